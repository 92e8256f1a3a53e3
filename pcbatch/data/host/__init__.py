"""Containers of all lanes on the host: the arguments and results of a call."""
