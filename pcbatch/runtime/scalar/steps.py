"""The steps of a machine of lanes, for one lane: traced at a width of one, and rewritten for a native function.

Whatever a machine does for the lanes of a window - run a block, record it, undo it - it does here for one lane at a
time, by the same code: its step is traced for a window of one place, whose mask is known to be true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
from jax.interpreters.partial_eval import dce_jaxpr

from pcbatch.jax_settings import settings
from pcbatch.lowering.jaxpr_passes.add_parts import add_parts
from pcbatch.runtime.scalar.lanes import VISITS, Visit, is_among, sweep
from pcbatch.runtime.scalar.loop_nest import Nest, blocks_of
from pcbatch.runtime.scalar.obstacles import reasons
from pcbatch.runtime.scalar.rules import ForOneLane
from pcbatch.runtime.scalar.words import Words
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.blocks import BlockLike, StepLike
from pcbatch.runtime.vm.lane_window import Window

PC: Any = jax.eval_shape(lambda: jnp.int32(0))  # the type of a program counter among the words of a lane


@dataclass(frozen=True)
class Steps:
    """A machine of lanes, as one lane runs in it.

    The state of a lane has the keys of the machine's state. Frames, [depth + 2, words], and what is in `whole` are as
    they are in the state of a machine of one lane; all else is without the axis of lanes.

    Attributes:
        codes: The blocks that a lane may wait for.
        nest: Their numbers, as loops in loops.
        context: Makes the context of steps from the values that they do not change, by key.
        whole: The state keys of what has no axis of lanes, frames among them.
        lanes_last: The state keys of what has the lanes as the last axis.
        known: The types of the values that steps do not change, by key.
        own: The keys of those of them that are a lane's.
    """

    codes: Sequence[BlockLike]
    nest: Nest
    context: Callable[[Values], StepLike]
    whole: frozenset[str]
    known: Mapping[str, jax.ShapeDtypeStruct]
    lanes_last: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    _kept: dict[Any, Mapping[int, _Step]] = field(default_factory=dict, compare=False, repr=False)

    def with_lanes(self, key: str, value: Any) -> Any:
        """Return a part of a lane's state as that of a machine of one lane."""
        if key in self.whole:
            return value
        return value[..., None] if key in self.lanes_last else value[None]

    def without_lanes(self, key: str, value: Any) -> Any:
        """Return a part of the state of a machine of one lane as that of the lane: the inverse of `with_lanes`."""
        if key in self.whole:
            return value
        return value[..., 0] if key in self.lanes_last else value[0]

    def traced(self, lane: Mapping[str, Any]) -> Mapping[int, _Step]:
        """Return the step of each block, by its number, for a lane whose state has these shapes and dtypes."""
        key = settings(), tuple((name, x.shape, x.dtype) for name, x in sorted(lane.items()))
        if key not in self._kept:
            make: Any = jax.ShapeDtypeStruct  # untyped in some releases of JAX
            state = {name: make(x.shape, x.dtype) for name, x in lane.items()}
            self._kept[key] = {code.index: _traced(self, code, state) for code in self.codes}
        return self._kept[key]

    def left(self, lane: Mapping[str, Any]) -> bool:
        """Return whether a step has an operation that no native function holds, for a lane as `traced` takes it."""
        return any(True for step in self.traced(lane).values() for _ in reasons(step.closed.jaxpr))

    def run(self, lane: Values, known: Values, some: jax.Array, budget: jax.Array | None = None) -> Values:
        """Return the state of a lane after it has run until it ends, or for so many visits.

        Args:
            lane: The state of the lane, by key.
            known: The values that steps do not change, by key.
            some: Any value that XLA does not know, int32[].
            budget: Of visits, int32[]; None: no limit.
        """
        ran = _run(self.traced(lane), self, lane, known, some, budget)
        return {key: ran[key].astype(value.dtype) for key, value in lane.items()}


@dataclass(frozen=True, eq=False)
class _Step:
    """A step of a block, as a jaxpr of what it reads, and of what it writes, by key."""

    closed: jex.ClosedJaxpr
    reads: tuple[str, ...]
    known: tuple[str, ...]
    writes: tuple[str, ...]

    def __call__(self, lane: Values, known: Values) -> Values:
        outs = jex.jaxpr_as_fun(self.closed)(*(lane[k] for k in self.reads), *(known[k] for k in self.known))
        return dict(zip(self.writes, outs, strict=True))


def _traced(steps: Steps, code: BlockLike, lane: Values) -> _Step:
    """Trace the step of a block for a lane of this state. Outside of it program counters are int32."""
    types = {key: PC if key == "pc" else value for key, value in lane.items()}

    def function(lane: Values, known: Values) -> Values:
        given = {key: steps.with_lanes(key, value) if key in steps.own else value for key, value in known.items()}
        carry = {key: steps.with_lanes(key, value) for key, value in lane.items()}
        place = jnp.zeros(1, jnp.int32)
        window = Window(1, jnp.ones(1, bool), place, place, dense=True, borrowed=False)
        new = steps.context(given).step(code, carry | {"pc": carry["pc"].astype(pc_type)}, window)
        return {
            key: steps.without_lanes(key, value).astype(types[key].dtype)
            for key, value in new.items()
            if value is not carry[key]
        }

    pc_type = lane["pc"].dtype
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(types, dict(steps.known))
    closed = add_parts(closed)
    jaxpr, used = dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
    reads = tuple(key for key, is_used in zip(sorted(types), used, strict=False) if is_used)
    known = tuple(key for key, is_used in zip(sorted(steps.known), used[len(types) :], strict=True) if is_used)
    rewritten = ForOneLane().inner(jex.ClosedJaxpr(jaxpr, closed.consts))
    return _Step(rewritten, reads, known, tuple(sorted(shapes)))


def _run(
    traced: Mapping[int, _Step], steps: Steps, lane: Values, known: Values, some: jax.Array, budget: jax.Array | None
) -> Values:
    lane = lane | {"pc": lane["pc"].astype(PC.dtype)} | ({} if budget is None else {VISITS: jnp.int32(0)})
    words = Words.of(lane)
    barrier: Any = jax.lax.optimization_barrier  # untyped
    codes = {code.index: code for code in steps.codes}
    counted = () if budget is None else (VISITS,)

    def waits(blocks: tuple[int, ...], lane: Values) -> jax.Array:
        # Behind a barrier with a value that XLA does not know: see `lanes._run`.
        there = is_among(blocks, barrier((words.scalar(lane, "pc"), some))[0])
        return there if budget is None else there & (words.scalar(lane, VISITS) < budget)

    def step(one: _Step, lane: Values) -> Values:
        lane, values = words.read(lane, (*one.reads, *counted))
        # What a step stores into is not held by the barrier: that would copy it.
        held = {key: value for key, value in values.items() if key in steps.whole and value.ndim}
        rest = {key: value for key, value in values.items() if key not in held}
        own, used, _ = barrier((rest, {key: known[key] for key in one.known}, words.scalar(lane, "pc")))
        own |= held
        return words.stored(lane, own, one(own, used) | ({VISITS: own[VISITS] + 1} if counted else {}))

    def arrays(one: _Step) -> set[str]:
        keys = (*one.reads, *one.writes, *counted)
        return {words.places[key][0] if key in words.places else key for key in keys}

    visits = {k: Visit(partial(step, one), arrays(one), codes[k].scope) for k, one in traced.items()}
    everywhere, lane = partial(waits, blocks_of(steps.nest)), words.packed(lane)
    ran: Values = jax.lax.while_loop(everywhere, partial(sweep, steps.nest, visits, waits), lane)
    return words.unpacked(ran)
