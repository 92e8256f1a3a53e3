"""Boxes: lists, dicts and sets that have several names become records of the lane, which have identities."""
