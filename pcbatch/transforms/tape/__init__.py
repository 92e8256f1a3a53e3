"""What a run records for its gradient, and the machine that runs backward over it."""
