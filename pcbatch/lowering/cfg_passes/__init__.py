"""Passes on the CFG IR, one file each: pure functions that return a new program."""
