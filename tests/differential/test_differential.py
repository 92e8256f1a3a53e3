"""The one law: batched equals plain Python, lane by lane, whatever the strategy, schedule, emitter or lane count."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcbatch.compiler import pipeline
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.interpret import LaneFailed
from pcbatch.ir.types import ArrayType
from pcbatch.ir.verifier import verify
from pcbatch.lowering.typing.abstract_values import Abstract
from tests.oracles.interpret_cfg import interpret_cfg
from tests.oracles.interpret_stack import interpret_stack
from tests.oracles.numpy_jaxpr import on_numpy
from tests.programs import PROGRAMS, Program, as_jax, select
from tests.programs.compare import assert_lanes_equal, assert_outcomes, assert_same_dtypes, to_numpy

pytestmark = pytest.mark.promotion("standard")

every_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)

# The programs of these names meet every combination of options; the others meet one of the first three each.
THOROUGH = ("fib", "gcd_subtractive", "count_primes", "hofstadter_female", "pea_nuts", "random_walk", "catalan")
COMBINATIONS = (
    {"schedule": "earliest", "emitter": "port"},
    {"schedule": "largest", "emitter": "guard"},
    {"schedule": "sweep", "emitter": "port"},
    {"schedule": "earliest", "emitter": "guard"},
    {"schedule": "largest", "emitter": "port"},
    {"schedule": "sweep", "emitter": "guard"},
)


@functools.lru_cache(maxsize=1)
def expected(program: Program, lanes: int) -> list[Any]:
    """The plain results of so many lanes."""
    return program.expected(lanes)


def check(program: Program, lanes: int, **options: Any) -> Any:
    """Run one batch and compare it with plain Python."""
    with program.mode():
        if program.raises:
            run = program.batched(**options).run(*program.args(lanes))
            assert_outcomes(run, expected(program, lanes), rtol=program.rtol)
            return run.value
        result = program.batched(**options)(*program.args(lanes))
        assert_lanes_equal(result, expected(program, lanes), rtol=program.rtol)
        return result


@pytest.mark.long
@pytest.mark.share(20, *range(8))
@every_program
def test_default_options_on_every_lane_count(program: Program) -> None:
    if PROGRAMS.index(program) % 18 == 0:
        check(program, 1)
    result = check(program, 17)  # the tests below take 2 and 7 lanes
    with program.mode():
        good = [value for value in expected(program, 17) if not isinstance(value, Exception)]
        assert_same_dtypes(result, good)


@pytest.mark.share(20, 12, 13)
@pytest.mark.older_emitters
@pytest.mark.long
@every_program
def test_local_strategy(program: Program) -> None:
    check(program, 7, strategy="local")


@pytest.mark.share(10)
@pytest.mark.older_emitters
@pytest.mark.long
@pytest.mark.parametrize("name", THOROUGH)
@pytest.mark.parametrize("lanes", [1, 2, 64])
def test_local_strategy_on_other_lane_counts(name: str, lanes: int) -> None:
    program = next(program for program in PROGRAMS if program.name == name)
    check(program, lanes, strategy="local")


@pytest.mark.share(20, 14, 15)
@pytest.mark.long
@every_program
def test_schedules_and_emitters(program: Program) -> None:
    check(program, 7, **COMBINATIONS[PROGRAMS.index(program) % 3])


@pytest.mark.share(20, 16)
@pytest.mark.long
@every_program
def test_a_narrower_machine_for_the_last_lanes(program: Program) -> None:
    check(program, 17, narrow=True, fork="never")


@pytest.mark.share(16)
@pytest.mark.long
@pytest.mark.parametrize("name", THOROUGH)
@pytest.mark.parametrize("options", COMBINATIONS, ids=lambda options: "-".join(options.values()))
def test_all_schedules_and_emitters(name: str, options: dict[str, str]) -> None:
    program = next(program for program in PROGRAMS if program.name == name)
    check(program, 7, **options)


def array_leaves(program: Program, params: Mapping[str, Abstract], example: tuple[Any, ...]) -> list[Any]:
    """The leaves that the compiled program takes as arguments; a default may be one of them."""
    bound = inspect.signature(program.fn).bind(*example)
    bound.apply_defaults()
    pairs = [zip(types.leaves, jax.tree.leaves(bound.arguments[name]), strict=True) for name, types in params.items()]
    values = [jnp.asarray(value) for pair in pairs for leaf, value in pair if isinstance(leaf, ArrayType)]
    return [value if jnp.issubdtype(value.dtype, jax.dtypes.extended) else np.asarray(value) for value in values]


@pytest.mark.share(3)
@every_program
def test_every_stage_verifies_and_interprets(program: Program, request: pytest.FixtureRequest) -> None:
    """On NumPy, with `--full` on JAX."""
    lanes = 2
    with program.mode(), np.errstate(all="ignore"):
        args = program.args(lanes)
        stages = pipeline.stages(program.batched(), args)
        params = program.batched().lower(*args).stages.params
        assert {"cfg", "stack", "opt"} <= set(stages)
        for name, stage in stages.items():
            assert verify(stage) == (), name
            quick: Any = stage if request.config.getoption("full") else on_numpy(stage)
            interpret: Any = interpret_cfg if isinstance(stage, CfgProgram) else interpret_stack
            for lane in range(lanes):
                example = as_jax(select(args, program.in_axes, lane))
                outcome = program.outcome(example)
                leaves = array_leaves(program, params, example)
                if isinstance(outcome, Exception):
                    with pytest.raises(LaneFailed) as info:
                        interpret(quick, leaves)
                    assert str(info.value.message) == str(outcome)
                    assert info.value.name == type(outcome).__name__
                    continue
                results, _ = interpret(quick, leaves)
                want = jax.tree.leaves(outcome)
                for actual, value in zip(jax.tree.leaves(results), want, strict=True):
                    np.testing.assert_allclose(to_numpy(actual), to_numpy(value), rtol=program.rtol, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("fib", [13, 21, 34, 55, 3, 21, 5, 8]),
        ("fib_f32", [8, 13, 34, 55, 3]),
        ("is_even", [False, True, True, False, True]),
        ("iota_sum", [78, 0, 5050]),
        ("gcd_subtractive", [1, 3, 7]),
        ("nested_ifs", [1, 3, 5, 1, 3]),
    ],
)
def test_known_answers(name: str, want: list[Any]) -> None:
    program = next(program for program in PROGRAMS if program.name == name)
    result = program.batched()(*program.args(len(want)))
    np.testing.assert_array_equal(result, want)


@pytest.mark.share(20, 16, 17)
@pytest.mark.older_emitters
@pytest.mark.long
@every_program
def test_under_jit(program: Program) -> None:
    lanes = 2
    with program.mode():
        batched = program.batched(max_depth=64)
        shared = isinstance(program.in_axes, tuple) and None in program.in_axes
        if shared:  # a shared Python number stays what it is inside jit, so close over the arguments
            args = program.args(lanes)
            result = jax.jit(lambda: batched.run(*args))()
        else:
            result = jax.jit(batched.run)(*program.args(lanes))
        assert_outcomes(result, expected(program, lanes), rtol=program.rtol)


@pytest.mark.full_only
def test_one_lane_does_not_depend_on_the_batch_size() -> None:
    for name in ("fib", "random_walk", "newton_sqrt"):
        program = next(program for program in PROGRAMS if program.name == name)
        args = program.args(64)
        large = program.batched()(*args)
        small = program.batched()(*program.args(2))
        for a, b in zip(jax.tree.leaves(large), jax.tree.leaves(small), strict=True):
            assert jnp.array_equal(a[:2], b)
