"""The authors' own autobatching of NUTS, in TensorFlow Probability: the host's side, and a script for its environment.

`make tfp` makes its environment, which has no JAX. The script is given a folder with `task.npz` and writes `found.json`
there.
"""

from __future__ import annotations

import inspect
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

NAME = "TensorFlow Probability"
INTERPRETER = Path(__file__).parents[2] / "build/tfp/bin/python"
LONGEST, LEAPFROGS, DEPTH = 3600, 4, 10  # seconds, leapfrog steps of a leaf as in the paper, doublings
WAYS = {f"{NAME}, program counter": False, f"{NAME}, local": True}


def rates(setting: Any, sizes: Sequence[int], draws: int) -> tuple[dict[int, dict[str, float]], str]:
    """Gradients per CPU second by chains and way, and why there are none."""
    if not INTERPRETER.exists():
        return {}, "not installed (`make tfp`)"
    import numpy as np

    signed = inspect.getclosurevars(setting.target.logp).nonlocals["signed"]  # the data, by label
    starts = {f"start{chains}": np.asarray(setting.start(chains), np.float32) for chains in sizes}
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "task.npz", step=setting.step, draws=draws, signed=signed, **starts)
        command = [str(INTERPRETER), "-P", __file__, folder]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
        except subprocess.TimeoutExpired:
            return {}, f"still running after {LONGEST} s"
        if done.returncode:
            return {}, (done.stderr.strip().splitlines() or ["failed"])[-1]
        found = json.loads((Path(folder) / "found.json").read_text("utf-8"))
    return {int(chains): some for chains, some in found.items()}, ""


def main(folder: Path) -> None:
    """Measure, in the environment of TensorFlow."""
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    import numpy as np
    import tensorflow as tf
    from tensorflow_probability.python.experimental.mcmc import nuts_autobatching

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    task = dict(np.load(folder / "task.npz"))
    signed = tf.constant(task["signed"], tf.float32)

    def log_density(q: Any) -> Any:
        margins = tf.matmul(q, signed, transpose_b=True)
        return tf.reduce_sum(tf.math.log_sigmoid(margins), -1) - 0.5 * tf.reduce_sum(q * q, -1)

    found: dict[str, dict[str, float]] = {}
    for chains in sorted(int(name.removeprefix("start")) for name in task if name.startswith("start")):
        q = tf.constant(task[f"start{chains}"])
        for way, stackless in WAYS.items():
            kernel = nuts_autobatching.NoUTurnSampler(
                log_density,
                float(task["step"]),
                DEPTH,
                unrolled_leapfrog_steps=LEAPFROGS,
                num_trajectories_per_step=int(task["draws"]),
                stackless=stackless,
                seed=1,
            )

            def run(q: Any, kernel: Any = kernel) -> Any:
                return kernel.one_step(q, kernel.bootstrap_results(q))[1].leapfrogs_taken

            call = run if stackless else tf.function(run, jit_compile=True, autograph=False)
            call(q)
            measured = []
            for _ in range(3):
                start = time.process_time()
                gradients = int(call(q).numpy().sum())
                measured.append(gradients / (time.process_time() - start))
            found.setdefault(str(chains), {})[way] = statistics.median(measured)
    (folder / "found.json").write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
