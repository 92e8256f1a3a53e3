"""Host code that waits for a batched function: requests from fibers, threads and coroutines, answered in batches."""
