"""Passes that rewrite the jaxprs of primitives: random draws."""
