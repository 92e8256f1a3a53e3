"""Objects that refer to one another, as arrays: packing them, and references to them in a lane."""
