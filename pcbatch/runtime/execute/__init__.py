"""The host's side of a run: compiled programs, growing stacks, refilled lanes."""
