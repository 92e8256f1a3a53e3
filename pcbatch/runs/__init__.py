"""Runs that are monitored, stopped, saved and resumed."""
