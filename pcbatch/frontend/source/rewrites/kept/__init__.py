"""Generators that are kept: the classes of the objects that stand for them, and the calls that make these."""
