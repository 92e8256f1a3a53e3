import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import pcbatch

folder = Path(tempfile.mkdtemp())


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


jax.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, ab: Pair(*ab))


@pcbatch.batch
def total(pair):
    return pair.a + pair.b


N = jnp.arange(9)
total.start(Pair(N, N)).save(folder / "run.npz")
total.load(folder / "run.npz")
