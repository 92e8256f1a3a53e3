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
down.start(N).advance(2).save(folder / "run.npz")
(folder / "cut.npz").write_bytes((folder / "run.npz").read_bytes()[:1000])
down.load(folder / "cut.npz")
