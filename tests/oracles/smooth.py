"""Random programs over floating numbers: the derivatives of the batch are those of the plain function, lane by lane."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np

from tests.oracles.derivatives import Call, check_elements, check_forward, check_reverse
from tests.oracles.interpreters import MODES, SCHEDULES
from tests.programs.smooth import SmoothProgram

LANES = 4


@dataclass(frozen=True)
class Derivative:
    """Which derivatives, of what, and how the batch runs."""

    kind: str = "reverse"
    shared: tuple[bool, bool] = (False, True)  # the scalar `c` and the matrix `W`
    jit: bool = False
    options: dict[str, Any] = field(default_factory=dict)


def derivatives() -> st.SearchStrategy[Derivative]:
    """Any; reverse mode more often than not."""
    kinds = st.sampled_from(("reverse", "reverse", "reverse", "forward", "elements"))
    shared = st.tuples(st.booleans(), st.booleans())
    options = st.fixed_dictionaries(
        {}, optional={"schedule": st.sampled_from(SCHEDULES), "modes": st.sampled_from(MODES)}
    )
    return st.builds(Derivative, kinds, shared, st.booleans(), options)


def call_of(program: SmoothProgram, seed: int, shared: tuple[bool, bool], lanes: int = LANES) -> Call:
    """A call of the program, some of whose arguments lanes share."""
    args = program.arguments(seed, lanes)
    axes = (0, 0, 0, 0, *(None if here else 0 for here in shared))
    given = tuple(x if axis == 0 else x[0] for x, axis in zip(args, axes, strict=True))
    batched = program.load().with_options(in_axes=axes)
    return Call(batched, tuple(map(jnp.asarray, given)), axes, lanes, raises=(AssertionError,))


def check_smooth(program: SmoothProgram, way: Derivative, seed: int) -> None:
    """Compare with plain Python, in 64 bits."""
    with jax.enable_x64(True), contextlib.ExitStack():
        call = call_of(program, seed, way.shared)
        options = {**way.options, **({"max_depth": 32, "max_tape": 4000} if way.jit else {})}
        with np.errstate(all="ignore"):
            match way.kind:
                case "forward" if "backward_rule" not in program.text:  # JAX has no forward mode of that
                    check_forward(call, way.jit, **options)
                case "elements":
                    check_elements(call, way.jit, **options)
                case _:
                    check_reverse(call, way.jit, **options)
