"""The text form of programs, and their export to other tools."""
