"""Texts and bytes of the lane, and their conversion to and from numbers."""
