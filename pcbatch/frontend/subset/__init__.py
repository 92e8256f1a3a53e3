"""The subset of Python that is compiled: everything else is refused here, before anything is built."""
