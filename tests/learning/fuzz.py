"""Random programs of independent calls under schedules at random: `python -m tests.learning.fuzz --count 20 --seed 0`.

Results and failures must be those of plain Python, whatever runs next.
"""

from __future__ import annotations

import argparse
import sys

import jax
import numpy as np

import pcbatch
from tests import conftest  # noqa: F401  (the same flags as in the suite, before JAX starts)
from tests.learning.random_policies import of_call
from tests.oracles.python_programs import Endless, Refused, check_jax, prepare
from tests.programs.forking_programs import forking_program

LANES = 5


def outcome(seed: int) -> str:
    """What comes of the program of a seed: "tasks", "lanes" (both the same as Python), "endless" or a code."""
    program = forking_program(seed)
    wide = any(k in ("flt", "flist") for _, k in program.params)
    with jax.numpy_dtype_promotion("standard"), jax.enable_x64(wide):
        try:
            case = prepare(program, seed, LANES)
            f = pcbatch.batch(case.fn).with_options(plan=pcbatch.Plan(fork="auto" if seed % 4 else "never"))
            policy = of_call(f, case.args(list(range(case.lanes))), seed)
            check_jax(case, {"fork": f.options.plan.fork, "schedule": policy}, np.random.default_rng(seed))
        except Endless:
            return "endless"
        except Refused as refused:
            return refused.code
        except (pcbatch.CompileError, pcbatch.UsageError) as error:
            return error.diagnostics[0].code
    return policy.machine


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    options = parser.parse_args()
    counts: dict[str, int] = {}
    for seed in range(options.seed, options.seed + options.count):
        came = outcome(seed)
        counts[came] = counts.get(came, 0) + 1
        print(seed, came, flush=True)
    print(counts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
