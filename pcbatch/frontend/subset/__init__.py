"""The checks that refuse all of Python that is not compiled, before anything is built."""
