"""Analyses that passes and the machine decide by: costs, frequencies, divergence."""
