"""The lowering of loops and of all that goes over elements: iterables, comprehensions, generators."""
