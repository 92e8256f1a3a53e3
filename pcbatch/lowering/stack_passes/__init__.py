"""Passes that make the stack IR (`lower_calls`) and work on it, one file each."""
