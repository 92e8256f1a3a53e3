"""Headline figures and tables of five papers, measured here beside what the papers report."""
