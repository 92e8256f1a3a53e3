"""The passes, one file each: pure functions that return a new program."""
