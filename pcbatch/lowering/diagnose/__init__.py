"""Faults of types and primitives, told in the user's words."""
