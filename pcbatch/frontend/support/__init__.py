"""Functions that compiled primitives call: Python's operators and builtins on traced values."""
