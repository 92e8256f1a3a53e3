"""Estimates that decide how a program is run: modes of blocks, time of a trip, memory, XLA's options."""
