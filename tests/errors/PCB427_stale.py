import tempfile
from pathlib import Path

import jax.numpy as jnp

import pcbatch
from pcbatch.report import Tuned


@pcbatch.batch
def halvings(n):
    while n > 1:
        n = n // 2
    return n


@pcbatch.batch
def thirds(n):
    while n > 2:
        n = n // 3
    return n


n = jnp.array([7, 1000, 42])
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "tuned.json"
    tuned = halvings.tune(n, seconds=5, schedules=["sweep"], emitters=[], modes=[])
    tuned.save(path)
    Tuned.load(path, thirds)
