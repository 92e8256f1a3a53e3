"""The command `pcbatch`, which shows, checks and explains batched functions."""
