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


N = jnp.arange(9)
down.run(N, save_to=folder / "run.npz")
down.run(N + 1, save_to=folder / "run.npz")
