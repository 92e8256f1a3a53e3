"""The pullback of a block: from the cotangents of what it gives to those of what it has taken in.

The block is computed again from its sources, then its steps are undone, last to first, each by `jax.vjp`. What lanes
touch of large registers is undone in their cotangents, in place (`Memory`).

A step of which a lane does not need the result (an arm of a selection that it has not taken, a value that it never
looks at, all of a lane without cotangents) has a cotangent of zero there. Its pullback must then give zero, but
`0 * inf` is NaN: so the result is masked wherever values may matter. Who needs a value is known without looking at its
cotangent: whoever needs what was made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from pcbatch.lowering.typing.jax_types import from_storage, storage_type, zeros
from pcbatch.runtime.vm.indexed_access import Batch, Common, Operand
from pcbatch.runtime.vm.lane_window import lane_mask
from pcbatch.transforms.tape.block_ssa import SHARED, Body, Load, Node, Store


class Memory(Protocol):
    """The cotangents of registers that are touched in part."""

    def loaded(self, step: Load, indices: Sequence[Any], cotangent: Any) -> None:
        """Add the cotangent of what was loaded."""

    def stored(self, step: Store, indices: Sequence[Any]) -> Any:
        """The cotangent of what was stored; that of the register becomes zero there, if it was overwritten."""


Env = dict[int, Operand]


def taken_in(body: Body, values: Mapping[str, Any], shared: Mapping[str, Any], width: int) -> Env:
    """The sources of a block, from `width` records by key, and from what lanes share; both in storage form. A shared
    value may be among `values` as well: lanes then have copies of their own. What no record holds is not read."""
    env: Env = {}
    for source in body.sources:
        if source.kind == SHARED and source.key not in values:
            env[source.number] = Common(from_storage(shared[source.name], source.type))
        elif source.key in values:
            env[source.number] = Batch(from_storage(values[source.key], source.type))
        else:
            env[source.number] = Batch(from_storage(zeros(storage_type(source.type), (width,)), source.type))
    env.update({made.number: Batch(values[made.key]) for made in body.dear if made.key in values})
    return env


def replay(body: Body, env: Env, width: int) -> Env:
    """All values of the block, for `width` records; what it loads is among the sources, what was dear may be."""
    env = dict(env)
    for step in body.steps:
        if isinstance(step, Node) and not all(out in env for out in step.outs):
            env.update(zip(step.outs, _batched(step.fn, [env[i] for i in step.ins], width), strict=True))
    return env


def _batched(fn: Callable[..., Any], operands: Sequence[Operand], width: int) -> list[Operand]:
    values = [operand.value for operand in operands]  # type: ignore[union-attr]
    axes = tuple(None if isinstance(operand, Common) else 0 for operand in operands)
    if all(axis is None for axis in axes):
        return [Common(value) for value in fn(*values)]
    return [Batch(value) for value in jax.vmap(fn, in_axes=axes, axis_size=width)(*values)]


@dataclass
class _Cotangents:
    """Of values, by number, and the records that need the values: bool[records]."""

    of: dict[int, Any]
    needed: dict[int, jax.Array]

    def add(self, number: int, ct: Any, here: jax.Array | None) -> None:
        """Add to the cotangent of a value; `here`: which records are those of; None: all of them together."""
        add(self.of, number, ct)
        if here is not None:
            self.needed[number] = self.needed[number] | here if number in self.needed else here


def _given(cotangents: Mapping[int, Any], env: Env) -> _Cotangents:
    records = {n: ct for n, ct in cotangents.items() if isinstance(env[n], Batch)}
    return _Cotangents(dict(cotangents), {n: _any_in_record(ct) for n, ct in records.items()})


def pull(body: Body, env: Env, cotangents: Mapping[int, Any], width: int, memory: Memory) -> dict[int, Any]:
    """The cotangents of all values of the records, from those of what leaves the block, [width, ...]."""
    cts = _given({number: ct for number, ct in cotangents.items() if isinstance(env[number], Batch)}, env)
    wanted = _dependent(body, env)
    for step in reversed(body.steps):
        match step:
            case Node():
                _undo(step, env, cts, width, wanted)
            case Load():
                if is_inexact(env[step.out]) and step.out in cts.of:
                    memory.loaded(step, _values(step.ins, env, width), cts.of[step.out])
            case Store():
                if is_inexact(env[step.ins[1]]):
                    stored = memory.stored(step, _values(step.ins[:1], env, width))
                    cts.add(step.ins[1], stored, _any_in_record(stored))
    return cts.of


def pull_shared(body: Body, env: Env, cotangents: Mapping[int, Any], width: int) -> dict[int, Any]:
    """The cotangents of what lanes share, summed over the records, from those at the edge of what is left for later."""
    cts = _given({n: ct.sum(0) if isinstance(env[n], Common) else ct for n, ct in cotangents.items()}, env)
    for step in reversed(body.steps):
        if isinstance(step, Node):
            _undo(step, env, cts, width, body.later)
    return cts.of


def _dependent(body: Body, env: Env) -> set[int]:
    """Values of records that have cotangents."""
    found = {s.number for s in body.sources if isinstance(env[s.number], Batch) and is_inexact(env[s.number])}
    for step in body.steps:
        if isinstance(step, Node) and any(i in found for i in step.ins):
            found |= {out for out in step.outs if is_inexact(env[out]) and isinstance(env[out], Batch)}
    return found


def _undo(step: Node, env: Env, cts: _Cotangents, width: int, wanted: AbstractSet[int]) -> None:
    outs = [k for k, out in enumerate(step.outs) if out in cts.of and is_inexact(env[out])]
    ins = [k for k, i in enumerate(step.ins) if i in wanted]
    if not outs or not ins:
        return
    given = [cts.of[step.outs[k]] for k in outs]
    operands = [env[i] for i in step.ins]
    needing = [cts.needed[step.outs[k]] for k in outs if step.outs[k] in cts.needed]
    here = reduce(jnp.logical_or, needing) if needing else None  # None: all that goes in is common
    commons = [k for k in ins if isinstance(operands[k], Common)]
    if here is not None and commons and not step.linear:  # sums over records take no part of them
        operands = [x if isinstance(x, Common) else Batch(_from_active_lane(x.value, here)) for x in operands]  # type: ignore[union-attr]

    def function(*values: Any) -> list[Any]:
        new = dict(zip(ins, values, strict=True))
        chosen = [type(x)(new.get(k, x.value)) for k, x in enumerate(operands)]  # type: ignore[union-attr]
        found = _batched(step.fn, chosen, width)
        return [found[k].value for k in outs]  # type: ignore[union-attr]

    values = [operands[k].value for k in ins]  # type: ignore[union-attr]
    pulled = jax.vjp(function, *values)[1](given)
    for k, ct in zip(ins, pulled, strict=True):
        if here is not None and not step.linear:
            mask = jnp.any(here) if k in commons else lane_mask(here, ct)
            ct = jnp.where(mask, ct, jnp.zeros((), ct.dtype))
        cts.add(step.ins[k], ct, None if k in commons else _needing(step, k, here, operands))


def _needing(step: Node, k: int, here: jax.Array | None, operands: Sequence[Operand]) -> jax.Array | None:
    """The records that need an operand, of those that need what is made of it."""
    if here is None or not step.chooses or k == 0:
        return here
    first: jax.Array = operands[0].value  # type: ignore[union-attr]
    return here & (first if k == 1 else ~first)


def zero_preserving_vjp(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The same function; its pullback of zero is zero, whatever the values are."""
    found: Any = jax.custom_vjp(fn)

    def pull(pullback: Any, cotangents: Any) -> Any:
        floats = [ct for ct in jax.tree.leaves(cotangents) if jnp.issubdtype(ct.dtype, jnp.inexact)]
        here = reduce(jnp.logical_or, (jnp.any(ct != 0) for ct in floats), jnp.zeros((), bool))

        def needed(ct: Any) -> Any:
            return jnp.where(here, ct, jnp.zeros((), ct.dtype)) if jnp.issubdtype(ct.dtype, jnp.inexact) else ct

        return jax.tree.map(needed, pullback(cotangents))

    found.defvjp(lambda *args: jax.vjp(fn, *args), pull)
    run: Callable[..., Any] = found
    return run


def zero_where_inactive(mask: jax.Array, value: Any) -> Any:
    """The value in the places of the mask, zero elsewhere."""
    return jnp.where(lane_mask(mask, value), value, jnp.zeros((), value.dtype))


def _from_active_lane(value: Any, here: jax.Array) -> Any:
    return jnp.where(lane_mask(here, value), value, value[jnp.argmax(here)][None])


def _any_in_record(ct: Any) -> jax.Array:
    return jnp.any((ct != 0).reshape(ct.shape[0], -1), axis=1)


def any_in_record(cts: Sequence[Any]) -> jax.Array:
    """bool[records]: has a record a cotangent that is not zero?"""
    return reduce(jnp.logical_or, map(_any_in_record, cts))


def spread_over(operand: Operand, width: int) -> Any:
    """[width, ...]: the value in every record."""
    if isinstance(operand, Common):
        return jnp.broadcast_to(operand.value, (width, *jnp.shape(operand.value)))
    return operand.value  # type: ignore[union-attr]


def add(cts: dict[int, Any], number: int, ct: Any) -> None:
    """Add to the cotangent of a value."""
    cts[number] = cts[number] + ct if number in cts else ct


def _values(numbers: Sequence[int], env: Env, width: int) -> list[Any]:
    return [spread_over(env[i], width) for i in numbers]


def is_inexact(operand: Operand) -> bool:
    """Has this value a cotangent?"""
    return bool(jnp.issubdtype(operand.value.dtype, jnp.inexact))  # type: ignore[union-attr]
