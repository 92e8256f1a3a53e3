"""Boxes: lists, dicts and sets with an identity."""
