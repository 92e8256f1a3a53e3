"""Program-counter autobatching at run time: one jitted program per signature; stacks grow between runs of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.stack import StackProgram
from pcbatch.options import Options
from pcbatch.runtime import emit, layout, plans, threads
from pcbatch.runtime.machine import Machine, State
from pcbatch.runtime.schedule import POLICIES
from pcbatch.runtime.status import Status

START_DEPTH = 32  # first guess for a recursive program outside `jit`
TRACED_DEPTH = 64  # what a recursive program gets inside `jit`, where stacks cannot grow
GROWTH_LIMIT = 2**30  # bytes of frames, beyond which stacks do not grow by themselves
DEPTH_LIMIT = 2**20  # nested calls, likewise

Reading = tuple[tuple[Any, ...], Any, Any, Any, Any, Any, Any, Any]  # all of an `Outcome` but its depth


@dataclass(frozen=True, slots=True)
class Outcome:
    """The leaves of a run: result leaves and status per lane, trips, statistics, final program counters and depths,
    and by variable what the messages of failures show.

    `depths` is None where there are no calls, or nobody knows."""

    values: tuple[Any, ...]
    status: Any
    trips: Any
    visits: Any
    active: Any
    pc: Any
    depths: Any
    shown: Any
    depth: int


@dataclass(slots=True)
class PcExecutable:
    """A program with the functions that run it; `depth` remembers how deep past calls went."""

    program: StackProgram
    options: Options
    schedule: str
    static_depth: int | None
    machine: Machine = field(init=False)
    depth: int = field(init=False)
    kernel: float = field(init=False)
    _jitted: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plan = layout.make(self.program, self.options.max_steps, self.options.stats)
        costs = plans.costs(self.program)
        emitter = emit.pick(self.options.emitter)
        self.machine = Machine(
            plan, emitter, POLICIES[self.schedule], plans.expensive(costs), lambda lanes: plans.modes(costs, lanes)
        )
        self.depth = self._first_depth(START_DEPTH)
        self.kernel = threads.typical_kernel(self.program)

    def _first_depth(self, open_ended: int) -> int:
        if self.options.max_depth is not None:
            return self.options.max_depth
        return open_ended if self.static_depth is None else self.static_depth

    @property
    def grows(self) -> bool:
        """May stacks grow between runs?"""
        return self.static_depth is None and self.options.max_depth is None

    def traced_depth(self) -> int:
        """The depth that a call inside `jit` gets."""
        return self._first_depth(TRACED_DEPTH)

    def _jit(self, function: Any, lanes: int, *static: str) -> Any:
        """The function jitted as fits so many lanes. Only outside traces: JAX allows no options inside."""
        options = threads.compiler_options(self.kernel, lanes)
        key = function.__name__, options is None
        if key not in self._jitted:
            self._jitted[key] = jax.jit(function, static_argnames=static, compiler_options=options)
        return self._jitted[key]

    def _whole(self, args: Mapping[str, Any], lanes: int, depth: int, keep: bool) -> tuple[Reading, State | None]:
        state = self.machine.advance(self.machine.start(args, lanes, depth))
        return self._read(state), state if keep else None

    def _again(self, state: State, depth: int) -> tuple[Reading, State]:
        state = self.machine.advance(self.machine.grow(state, depth))
        return self._read(state), state

    def _read(self, state: State) -> Reading:
        values, status = self.machine.results(state)
        carry = state.carry
        return (
            values,
            status,
            state.trips,
            carry.get("visits"),
            carry.get("active"),
            carry["pc"],
            carry.get("depth"),
            self.machine.shown(state),
        )

    def _start(self, lanes: int) -> Any:
        return self._jit(self._whole, lanes, "lanes", "depth", "keep")

    def run(self, args: Mapping[str, Any], lanes: int) -> Outcome:
        """Run all lanes to their end. Inside a trace stacks have a fixed depth."""
        if tracing(args):
            depth = self.traced_depth()
            return Outcome(*self._whole(args, lanes, depth, False)[0], depth=depth)
        depth = self.depth
        out: Reading
        state: State | None
        out, state = self._start(lanes)(args, lanes=lanes, depth=depth, keep=self.grows)
        while self.grows and state is not None and self._is_full(out[1]) and 2 * depth <= self._deepest(lanes):
            depth *= 2
            out, state = self._jit(self._again, lanes, "depth")(state, depth=depth)
        if self.grows:
            self.depth = depth
        return Outcome(*out, depth=depth)

    def _is_full(self, status: Any) -> bool:
        return bool(np.any(np.asarray(status) == int(Status.STACK_FULL)))

    def _deepest(self, lanes: int) -> int:
        sizes = [4]
        frames = self.machine.layout.frames
        sizes.append(0 if frames is None else frames.bytes())
        return min(DEPTH_LIMIT, max(START_DEPTH, GROWTH_LIMIT // (sum(sizes) * max(1, lanes))))

    def lower(self, args: Mapping[str, Any], lanes: int) -> Any:
        """`jax.stages.Lowered` of the whole run at the depth that a call would start with."""
        return self._start(lanes).lower(args, lanes=lanes, depth=self.depth, keep=False)

    def outcome(self, result: tuple[Reading, State | None], depth: int) -> Outcome:
        """What the compiled form of `lower` gave. `depth`: that of its stacks."""
        return Outcome(*result[0], depth=depth)

    def jaxpr(self, args: Mapping[str, Any], lanes: int) -> Any:
        """The jaxpr of the whole run."""
        return jax.make_jaxpr(partial(self._whole, lanes=lanes, depth=self.depth, keep=False))(args)


def tracing(args: Mapping[str, Any]) -> bool:
    """Is this call part of a program that JAX is tracing?"""
    # A constant made under a trace is a tracer as well: a call inside `jit` with concrete arguments is traced too.
    leaves = [*jax.tree.leaves(args), jnp.zeros(())]
    return any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
