"""Programs over the devices of several processes, for `test_meshes.py`.

`python -m tests.devices.two_processes OUT RANK COUNT PORT`: one of COUNT processes that have four CPU devices in all,
lanes spread over all of them. What runs give is written to OUT, whole.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import jax
import numpy as np

DEVICES = 4


def main(out: str, rank: int, count: int, port: int) -> None:
    """Run, and write what there is."""
    update: Any = jax.config.update
    update("jax_num_cpu_devices", DEVICES // count)
    if count > 1:
        update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"127.0.0.1:{port}", count, rank)
    cases = importlib.import_module("tests.devices.process_cases")  # JAX has started: modules may compute
    assert len(jax.devices()) == DEVICES
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    found = cases.run(mesh).items()
    leaves = {f"{name} {k}": cases.whole(x) for name, tree in found for k, x in enumerate(jax.tree.leaves(tree))}
    np.savez(out, **leaves)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
