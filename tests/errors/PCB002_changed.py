import linecache

import jax.numpy as jnp

import pcbatch

N = jnp.array([1, 2, 3])

text = "double = lambda n: 2 * n\n"
names = {}
exec(compile(text, "<cell>", "exec"), names)
linecache.cache["<cell>"] = (1, None, ["double = 2\n"], "<cell>")
pcbatch.batch(names["double"])(N)
