"""Tools for those who work on pcbatch; not installed."""
