"""Finding, parsing and understanding the text of a function."""
