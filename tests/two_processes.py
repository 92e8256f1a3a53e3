"""Programs over the devices of several processes, for `test_meshes.py`.

`python -m tests.two_processes OUT`: everything on one device; or `OUT RANK COUNT PORT`: one of COUNT processes with two
CPU devices each, lanes spread over all of them. What runs give is written to OUT, whole.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import jax
import numpy as np


def main(out: str, rank: int = 0, count: int = 1, port: int = 0) -> None:
    """Run, and write what there is."""
    update: Any = jax.config.update
    update("jax_num_cpu_devices", 2)
    if count > 1:
        update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"127.0.0.1:{port}", count, rank)
    cases = importlib.import_module("tests.process_cases")  # JAX has started: modules may compute
    place, mesh = (lambda x: x), None
    if count > 1:
        mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
        assert len(jax.devices()) == 2 * count and len(jax.local_devices()) == 2
        lanes = jax.NamedSharding(mesh, jax.P("x"))
        place = lambda tree: jax.tree.map(lambda leaf: cases.placed(leaf, lanes), tree)
    found = cases.run(place, mesh).items()
    leaves = {f"{name} {k}": cases.whole(x) for name, tree in found for k, x in enumerate(jax.tree.leaves(tree))}
    np.savez(out, **leaves)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
