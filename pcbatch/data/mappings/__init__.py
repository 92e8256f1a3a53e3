"""Dicts and sets of the lane: hash tables, and the keys that they hold."""
