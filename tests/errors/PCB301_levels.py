"""A list that is put into itself: its type has no end."""

import jax.numpy as jnp

import pcbatch


@pcbatch.batch
def nested(n):
    xs = []
    for _ in range(n):
        xs = [list(xs)]
    return len(xs)


nested(jnp.arange(3))
