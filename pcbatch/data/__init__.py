"""Python's data on the arrays of a lane: its containers, objects, and the functions and operators on them."""
