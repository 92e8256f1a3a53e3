"""Functions of the program rewritten before they are lowered: trees in, trees with the same meaning out."""
