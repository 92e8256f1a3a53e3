"""Tuples of trees as records of a lane, and texts and numbers beside them."""
