"""Random programs against five oracles, so that a mismatch names the stage that is wrong.

Explore with `python -m tests.test_fuzz FIRST COUNT [SIZE]`; the smallest size that fails is printed.
"""

from __future__ import annotations

import sys

import jax
import numpy as np
import pytest

from pcbatch import pipeline
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.interpret import interpret_cfg, interpret_stack
from pcbatch.ir.verifier import verify
from tests.programs.random_programs import load, random_source

LANES = 9
VARIANTS = (
    {},
    {"schedule": "sweep", "emitter": "mask"},
    {"schedule": "earliest", "emitter": "port"},
    {"schedule": "largest", "emitter": "guard"},
    {"strategy": "local"},
)


def check(seed: int, size: int, variants: tuple[dict[str, str], ...]) -> None:
    """Every oracle and the given ways to run it agree with plain Python."""
    text = random_source(seed, size)
    entry = load(text, f"<random program {seed}, size {size}>")
    rng = np.random.default_rng(seed)
    args = tuple(rng.integers(0, top, LANES).astype(np.int32) for top in (30, 30, 4))
    want = [tuple(int(part) for part in entry.plain(*(int(arg[k]) for arg in args))) for k in range(LANES)]
    columns = [list(column) for column in zip(*want, strict=True)]
    stages = pipeline.stages(entry, args)
    for name, stage in stages.items():
        assert verify(stage) == (), f"{name}\n{text}"
        interpret = interpret_cfg if isinstance(stage, CfgProgram) else interpret_stack
        for k in range(LANES):
            results, _ = interpret(stage, [arg[k] for arg in args])
            assert tuple(int(leaf) for leaf in jax.tree.leaves(results)) == want[k], f"stage {name}, lane {k}\n{text}"
    for options in variants:
        result = entry.with_options(**options)(*args)
        assert [np.asarray(part).tolist() for part in result] == columns, f"{options}\n{text}"


@pytest.mark.parametrize("seed", range(30))
def test_random_program(seed: int) -> None:
    check(seed, 12, (VARIANTS[0], VARIANTS[1 + seed % 4]))


def explore(first: int, count: int, size: int) -> None:
    """Print the failing seeds, each with the smallest size that fails."""
    for seed in range(first, first + count):
        for smaller in range(1, size + 1):
            try:
                check(seed, smaller, VARIANTS)
            except Exception as error:
                print(f"seed {seed}, size {smaller}: {type(error).__name__}: {error}", flush=True)
                break
        jax.clear_caches()


if __name__ == "__main__":
    explore(*(int(word) for word in sys.argv[1:4]), *([12] if len(sys.argv) < 4 else []))
