"""A whole machine as one GPU kernel."""
