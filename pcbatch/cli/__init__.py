"""The command `pcbatch`."""
