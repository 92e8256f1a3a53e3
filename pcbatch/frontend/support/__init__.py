"""The support module, which compiled primitives call: Python's operators, and calls of the user's helpers."""
