"""Python's own data in a lane: lists, dicts and values that may be None, and the checks that reading them needs."""
