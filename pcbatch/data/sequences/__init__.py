"""Sequences of the lane: lists, tuples, deques, ranges and iterators; their order, searches and sorts."""
