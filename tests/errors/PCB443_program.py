import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import pcbatch

folder = Path(tempfile.mkdtemp())


@pcbatch.batch
def down(n):
    while n > 0:
        n -= 1
    return n


@pcbatch.batch
def faster(n):
    while n > 0:
        n -= 2
    return n


N = jnp.arange(9)
down.start(N).save(folder / "run.npz")
faster.load(folder / "run.npz")
