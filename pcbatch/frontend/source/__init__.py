"""The source of a function: its text, its syntax tree and the meaning of its names."""
