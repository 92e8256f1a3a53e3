"""Python's operators, builtins and library functions on values of a lane."""
