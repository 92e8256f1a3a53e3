"""Reads and writes of a part of a register: `y = xs[i]`, `xs = xs.at[i].set(v)`.

A register is normally read whole and updated by selecting, for whole lanes, between its new and its old value. For a
large array of which one row is touched that would move everything on each visit. So a primitive is cut at the gathers
and scatters of its register operands: those are done on the register itself, with the lane as one more index, and the
segments between them run under `vmap`. Lanes that do not store get a number out of range, which the scatter drops.

    before:  f(xs, i, v) = xs.at[i].set(g(xs[i], v))            one `vmap` over all of xs
    after:   y = gather xs[lane, i]; z = vmap(g)(y, v); scatter z into xs[lane, i]
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp

from pcbatch.data.by_width import by_width_p
from pcbatch.ir.ops import Prim
from pcbatch.lowering.analysis.cost import SCATTERS
from pcbatch.lowering.jaxpr_passes.parts import cut_out
from pcbatch.lowering.stack_passes.stored_into import MIN_SIZE
from pcbatch.lowering.typing.jax_types import integer_limits
from pcbatch.lowering.typing.trace import JaxprFn
from pcbatch.runtime.vm import lanes_last
from pcbatch.runtime.vm.lane_window import Window
from pcbatch.runtime.vm.operands import (
    Batch,
    Common,
    Operand,
    Whole,
    applied_lanes_last,
    at_places,
    batched,
    everywhere,
    moved,
)

LOADS = ("gather", "dynamic_slice")
LIMIT = 2**31 - 1
MOST_STORES = 256  # into one register by one primitive; beyond that it is moved whole


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a primitive that touches no register."""

    closed: jex.ClosedJaxpr
    ins: tuple[Any, ...]
    outs: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Touch:
    """A gather, a slice or a scatter of (a version of) a register."""

    eqn: Any

    @property
    def stores(self) -> bool:
        """Whether the touch is a scatter."""
        return self.eqn.primitive.name in SCATTERS


@dataclass(frozen=True, slots=True)
class Cut:
    """A primitive as a sequence of segments and touches."""

    steps: tuple[Segment | Touch, ...]
    invars: tuple[Any, ...]
    outvars: tuple[Any, ...]
    registers: frozenset[int]  # positions of the inputs that are touched
    stored: tuple[tuple[int, int], ...]  # (output, input) positions: the output is the input's register, stored into


def cut(op: Prim, among: Collection[str] | None = None) -> Cut | None:
    """Cut a typed primitive at its touches of register operands (None: of any), by name; None if it has none."""
    if not isinstance(op.expr.fn, JaxprFn) or any(cast is not None for cast in op.expr.fn.casts):
        return None
    return _Cutter(op, op.expr.fn.closed, among).cut()


@dataclass
class _Cutter:
    op: Prim
    closed: jex.ClosedJaxpr
    among: Collection[str] | None
    versions: dict[Any, int] = field(default_factory=dict)  # jaxpr variable -> the input whose register it is

    def cut(self) -> Cut | None:
        jaxpr = self.closed.jaxpr
        names = self.op.expr.ins
        chosen = {v: k for k, v in enumerate(jaxpr.invars) if self.among is None or names[k] in self.among}
        self.versions = {v: k for v, k in chosen.items() if _large(v) and self._only_touched(v)}
        touches = [k for k, eqn in enumerate(jaxpr.eqns) if self._is_touch(eqn)]
        if not touches:
            return None
        stored = tuple(
            (k, self.versions[v])
            for k, v in enumerate(jaxpr.outvars)
            if isinstance(v, jex.Var) and v in self.versions and v not in jaxpr.invars
        )
        used = {self.versions[jaxpr.eqns[k].invars[0]] for k in touches}
        return Cut(tuple(self._steps(touches)), tuple(jaxpr.invars), tuple(jaxpr.outvars), frozenset(used), stored)

    def _uses(self, var: Any) -> list[Any]:
        return [eqn for eqn in self.closed.jaxpr.eqns if any(v is var for v in eqn.invars)]

    def _only_touched(self, var: Any) -> bool:
        """Whether a variable is used by touches alone, and its stored-into versions as `_ends_well` demands."""
        position = next((k for k, v in enumerate(self.closed.jaxpr.invars) if v is var), None)
        if not self._uses(var) or any(v is var for v in self.closed.jaxpr.outvars):
            return False
        versions, stores = [var], 0
        while versions:
            version, stores = versions.pop(), stores + 1
            if stores > MOST_STORES:  # each would be an operation on all lanes' registers
                return False
            for eqn in self._uses(version):
                if any(v is version for v in eqn.invars[1:]):
                    return False
                if eqn.primitive.name in LOADS:
                    continue
                if eqn.primitive.name not in SCATTERS or not _drops(eqn):
                    return False
                stored = eqn.outvars[0]
                if any(v is stored for v in self.closed.jaxpr.outvars):
                    if not self._ends_well(stored, position):
                        return False
                elif not self._uses(stored):
                    return False
                else:
                    versions.append(stored)
        return True

    def _ends_well(self, version: Any, position: int | None) -> bool:
        """Whether a stored-into version is the result that replaces the register's value.

        Otherwise the register would be changed in place though its old value, or a copy of the new one, is still used.
        """
        outs = [k for k, v in enumerate(self.closed.jaxpr.outvars) if v is version]
        name = None if position is None else self.op.expr.ins[position]
        return len(outs) == 1 and self.op.dsts[outs[0]] == name and not self._stores_after(version)

    def _stores_after(self, version: Any) -> bool:
        return any(
            eqn.primitive.name not in LOADS or any(v is version for v in eqn.invars[1:]) for eqn in self._uses(version)
        )

    def _is_touch(self, eqn: Any) -> bool:
        if eqn.primitive.name not in (*LOADS, *SCATTERS):
            return False
        operand = eqn.invars[0]
        if isinstance(operand, jex.Literal) or operand not in self.versions:
            return False
        if eqn.primitive.name in SCATTERS:
            self.versions[eqn.outvars[0]] = self.versions[operand]
        return True

    def _steps(self, touches: Sequence[int]) -> Iterable[Segment | Touch]:
        eqns, start = self.closed.jaxpr.eqns, 0
        constants = set(self.closed.jaxpr.constvars)
        read = [v for k in touches for v in eqns[k].invars[1:] if isinstance(v, jex.Var) and v in constants]
        read += [v for v in self.closed.jaxpr.outvars if isinstance(v, jex.Var) and v in constants]
        if read:  # constants that touches read, and those that are results
            yield self._segment([], list(dict.fromkeys(read)))
        for k in [*touches, len(eqns)]:
            if k > start:
                later = [v for vs in (*(eqn.invars for eqn in eqns[k:]), self.closed.jaxpr.outvars) for v in vs]
                used_later = {v for v in later if isinstance(v, jex.Var)}
                defined = [v for eqn in eqns[start:k] for v in eqn.outvars]
                yield self._segment(eqns[start:k], [v for v in defined if v in used_later])
            if k < len(eqns):
                yield Touch(eqns[k])
            start = k + 1

    def _segment(self, eqns: Sequence[Any], outs: Sequence[Any]) -> Segment:
        jaxpr = self.closed.jaxpr
        consts = dict(zip(jaxpr.constvars, self.closed.consts, strict=True))
        return Segment(*cut_out(jaxpr, eqns, outs, consts), tuple(outs))


def _large(var: Any) -> bool:
    return int(var.aval.size) >= MIN_SIZE and not jnp.issubdtype(var.aval.dtype, jax.dtypes.prng_key)


def _drops(eqn: Any) -> bool:
    """Whether a scatter drops updates whose index is out of range, so that lanes can be left out of it."""
    # There must be an index at all: `.at[:]` has none.
    drops: bool = eqn.params["mode"] == jax.lax.GatherScatterMode.FILL_OR_DROP
    return drops and bool(eqn.invars[1].aval.size)


def load_key(position: int, step: int) -> str:
    """Return the key of a gathered value: the operation's position in its block, and the step of its cut."""
    return f"{position}.{step}"


def run(
    cut: Cut, operands: Sequence[Operand], window: Window, mask: jax.Array, by_lanes_last: bool = False
) -> tuple[list[Operand], dict[int, Any]]:
    """Run a primitive that is cut.

    Args:
        cut: The primitive.
        operands: Its operands; those of `cut.registers` are `Whole`.
        window: The lanes.
        mask: bool[width]: the places that store.
        by_lanes_last: Whether its segments are evaluated with the lanes last where that pays.

    Returns:
        The results, and the gathered values [width, ...] by step. A result of `cut.stored` is `Whole`.
    """
    env: dict[Any, Operand] = dict(zip(cut.invars, operands, strict=True))

    def look(v: Any) -> Operand:
        return Common(v.val) if isinstance(v, jex.Literal) else env[v]

    loaded: dict[int, Any] = {}
    for k, step in enumerate(cut.steps):
        match step:
            case Segment():
                ins = [look(v) for v in step.ins]
                if by_lanes_last and lanes_last.pays(step.closed.jaxpr):
                    outs = applied_lanes_last(step.closed, ins, window)
                else:
                    outs = batched(jex.jaxpr_as_fun(step.closed), ins, window)
                env.update(zip(step.outs, outs, strict=True))
            case Touch(eqn=eqn):
                target = look(eqn.invars[0])
                assert isinstance(target, Whole)
                rest = [look(v) for v in eqn.invars[1:]]
                if step.stores:
                    env[eqn.outvars[0]] = Whole(_store(eqn, target.array, rest, window, mask))
                else:
                    loaded[k] = _load(eqn, target.array, rest, window)
                    env[eqn.outvars[0]] = Batch(loaded[k])
    stored = {k for k, _ in cut.stored}
    # A register that is returned unchanged becomes a value: only one that is stored into is updated in place.
    outs = [look(v) if k in stored else moved(look(v), window) for k, v in enumerate(cut.outvars)]
    return outs, loaded


def _load(eqn: Any, array: Any, rest: Sequence[Operand], window: Window) -> Any:
    values = [at_places(operand, window) for operand in rest]
    axes = tuple(None if isinstance(operand, Common) else 0 for operand in rest)

    def slice_(lane: jax.Array, *starts: Any) -> Any:
        sizes = (1, *eqn.params["slice_sizes"])
        clamped = (_start(s, array.shape[k] - sizes[k]) for k, s in enumerate(starts, start=1))
        return eqn.primitive.bind(array, lane, *clamped, slice_sizes=sizes)[0]

    def gather(lane: jax.Array, indices: Any) -> Any:
        params = eqn.params
        numbers = params["dimension_numbers"]
        return jax.lax.gather(
            array,
            _with_lane(lane, indices),
            jax.lax.GatherDimensionNumbers(
                offset_dims=numbers.offset_dims,
                collapsed_slice_dims=(0, *_shift(numbers.collapsed_slice_dims)),
                start_index_map=(0, *_shift(numbers.start_index_map)),
                operand_batching_dims=_shift(numbers.operand_batching_dims),
                start_indices_batching_dims=numbers.start_indices_batching_dims,
            ),
            slice_sizes=(1, *params["slice_sizes"]),
            unique_indices=params["unique_indices"],
            mode=params["mode"],
            fill_value=params["fill_value"],
        )

    body = slice_ if eqn.primitive.name == "dynamic_slice" else gather
    return jax.vmap(body, in_axes=(0, *axes), axis_size=window.width)(window.source, *values)


def _start(index: jax.Array, last: int) -> jax.Array:
    """Return a start index of any integer dtype clamped to 0 ... last, as int32: the way in which XLA clamps it."""
    return jnp.clip(index, 0, min(last, integer_limits(index.dtype)[1])).astype(jnp.int32)


def _store(eqn: Any, array: Any, rest: Sequence[Operand], window: Window, mask: jax.Array) -> Any:
    indices, updates = (everywhere(operand, window) for operand in rest)
    numbers = of_all_lanes(eqn.params["dimension_numbers"])
    params = {**eqn.params, "dimension_numbers": numbers, "indices_are_sorted": False}
    return eqn.primitive.bind(array, targets(indices, window, mask), updates, **params)


def of_all_lanes(numbers: jax.lax.ScatterDimensionNumbers) -> jax.lax.ScatterDimensionNumbers:
    """Return the axes of a scatter into one lane's register as those of a scatter into the registers of all lanes."""
    return jax.lax.ScatterDimensionNumbers(
        update_window_dims=_shift(numbers.update_window_dims),
        inserted_window_dims=(0, *_shift(numbers.inserted_window_dims)),
        scatter_dims_to_operand_dims=(0, *_shift(numbers.scatter_dims_to_operand_dims)),
        operand_batching_dims=_shift(numbers.operand_batching_dims),
        scatter_indices_batching_dims=_shift(numbers.scatter_indices_batching_dims),
    )


def targets(indices: Any, window: Window, mask: jax.Array) -> jax.Array:
    """Return index vectors [width, ...] with the lane in front; out of range for places that are not in `mask`."""
    lanes = window.targets(mask).reshape(-1, *(1,) * (indices.ndim - 1))
    return _with_lane(lanes, indices)


def _with_lane(lane: jax.Array, indices: Any) -> jax.Array:
    """Return index vectors with the lane in front of each."""
    wide = indices.astype(_index_dtype(indices.dtype))
    lanes = jnp.broadcast_to(lane.astype(wide.dtype), (*wide.shape[:-1], 1))
    return jnp.concatenate([lanes, wide], axis=-1)


def _index_dtype(dtype: Any) -> Any:
    """Return a dtype that holds every index of this dtype and every number of a lane."""
    return dtype if integer_limits(dtype)[1] >= LIMIT else jnp.int32


def _shift(dims: Iterable[int]) -> tuple[int, ...]:
    """Return the axes of one lane's array as axes of the array of all lanes."""
    return tuple(d + 1 for d in dims)


def in_part(op: object) -> set[str]:
    """Return the variables of which an operation reads or writes a part in place."""
    if not isinstance(op, Prim) or not isinstance(op.expr.fn, JaxprFn):
        return set()
    jaxpr = op.expr.fn.closed.jaxpr
    if any(eqn.primitive is by_width_p for eqn in jaxpr.eqns):  # in a program of one lane, which stores all in place
        return {name for name, v in zip(op.expr.ins, jaxpr.invars, strict=True) if v.aval.size >= MIN_SIZE}
    pieces = cut(op)
    return set() if pieces is None else {op.expr.ins[k] for k in pieces.registers}
