"""The tape that a run records for its gradient, and the machine that undoes its records."""
