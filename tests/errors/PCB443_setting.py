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
down.start(N).save(folder / "run.npz")
with jax.default_matmul_precision("float32"):
    down.load(folder / "run.npz")
