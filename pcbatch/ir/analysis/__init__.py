"""Analyses of programs of all forms: graphs, fixpoints, liveness and assignments."""
