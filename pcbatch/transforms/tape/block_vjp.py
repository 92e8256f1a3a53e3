"""The pullback of a block: from the cotangents of its outputs to those of its sources.

The block is computed again from its sources, then its steps are undone, last to first, each by `jax.vjp`. Accesses by
index of large registers are undone in the cotangents of those registers, in place (`Memory`).

A record that does not need the result of a step (the arm of a selection that was not taken, a value that is never used,
everything if the lane has no cotangents) has a cotangent of zero there. The step's pullback must then give zero, but
`0 * inf` is NaN: so what it gives is masked wherever values may matter. Which records need a value is not read off its
cotangent: they are those that need a result of the steps that use the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from pcbatch.lowering.typing.jax_types import from_storage, storage_type, zeros
from pcbatch.runtime.vm.lane_window import lane_mask
from pcbatch.runtime.vm.operands import Batch, Common, Operand
from pcbatch.transforms.tape import lane_pieces
from pcbatch.transforms.tape.block_ssa import Body, Load, Node, ReadRegister, SharedValue, Store
from pcbatch.transforms.tape.needs import PLAIN, Needs


class Memory(Protocol):
    """The cotangents of registers that are accessed by index."""

    def undo_load(self, step: Load, indices: Sequence[Any], cotangent: Any) -> None:
        """Add the cotangent of the loaded value, [width, ...], to that of the register."""

    def undo_store(self, step: Store, indices: Sequence[Any]) -> Any:
        """Return the cotangent of the stored value, [width, ...], and set that of the register to zero there, if the
        store has overwritten it."""


Env = dict[int, Operand]  # values by number


def replay(
    body: Body,
    values: Mapping[str, Any],
    shared: Mapping[str, Any],
    width: int,
    agreed: Mapping[str, Any] = MappingProxyType({}),
    in_pieces: bool = False,
) -> Env:
    """All values of a block, computed again from `width` records and from shared values, in storage form.

    Args:
        body: The block. Its loaded parts are among its sources; its expensive results may be among `values`.
        values: By the key of a source, [width, ...]. A shared value may be one of them: then each lane has a copy, and
            a cotangent, of its own. Sources that have no value are read by nothing, and zero here.
        shared: By variable.
        width: The number of records.
        agreed: The values of registers that are the same in all records, by name.
        in_pieces: See `pull_back`.
    """
    env = _sources(body, values, shared, width, agreed)
    for step in body.steps:
        if isinstance(step, Node) and not all(out in env for out in step.outs):
            env.update(zip(step.outs, _computed(step, [env[i] for i in step.ins], width, in_pieces), strict=True))
    return env


def _sources(
    body: Body, values: Mapping[str, Any], shared: Mapping[str, Any], width: int, agreed: Mapping[str, Any]
) -> Env:
    """The sources of a block as values of its type, and those expensive results that are at hand."""
    env: Env = {}
    for source in body.sources:
        if isinstance(source, SharedValue) and source.key not in values:
            env[source.number] = Common(from_storage(shared[source.name], source.type))
        elif isinstance(source, ReadRegister) and source.name in agreed:
            env[source.number] = Common(from_storage(agreed[source.name], source.type))
        elif source.key in values:
            env[source.number] = Batch(from_storage(values[source.key], source.type))
        else:
            env[source.number] = Batch(from_storage(zeros(storage_type(source.type), (width,)), source.type))
    env.update({result.number: Batch(values[result.key]) for result in body.expensive if result.key in values})
    return env


def _computed(step: Node, operands: Sequence[Operand], width: int, in_pieces: bool) -> list[Operand]:
    """The results of a step."""
    given = [x for x in operands if isinstance(x, Batch | Common)]
    if in_pieces and step.shifts and step.costly and len(given) == len(operands):
        found = lane_pieces.evaluated(step.fn, given, width)
        if found.outs is not None:
            return found.outs
    return _batched(step.fn, operands, width)


def _batched(fn: Callable[..., Any], operands: Sequence[Operand], width: int) -> list[Operand]:
    values = [operand.value for operand in operands]  # type: ignore[union-attr]
    axes = tuple(None if isinstance(operand, Common) else 0 for operand in operands)
    if all(axis is None for axis in axes):
        return [Common(value) for value in fn(*values)]
    return [Batch(value) for value in jax.vmap(fn, in_axes=axes, axis_size=width)(*values)]


@dataclass
class _Cotangents:
    """Cotangents by number of the value, and the records that need the value (`needs.py`)."""

    of: dict[int, Any]
    needed: dict[int, jax.Array]
    needs: Needs
    in_pieces: bool = False
    costly: set[int] = field(default_factory=set)  # values with a cotangent that a later shift must not compute again

    def add(self, number: int, ct: Any, needing: jax.Array | None, costly: bool = False) -> None:
        """Add to the cotangent of a value. `needing`: its needs by this use; None for a shared value, which has one
        cotangent for all records."""
        add(self.of, number, ct)
        self.costly |= {number} if costly else set()
        if needing is not None:
            known = self.needed.get(number)
            self.needed[number] = needing if known is None else self.needs.either(known, needing)


def _initial(cotangents: Mapping[int, Any], env: Env, needs: Needs) -> _Cotangents:
    records = {n: ct for n, ct in cotangents.items() if isinstance(env[n], Batch)}
    return _Cotangents(dict(cotangents), {n: needs.of(ct) for n, ct in records.items()}, needs)


def pull_back(
    body: Body,
    env: Env,
    cotangents: Mapping[int, Any],
    width: int,
    memory: Memory,
    needs: Needs = PLAIN,
    in_pieces: bool = False,
) -> dict[int, Any]:
    """The cotangents of all values that records hold or compute, from those of the outputs; [width, ...] by number.

    `in_pieces`: steps are evaluated as `lane_pieces.py` says. Dead code cannot be told from other then, and JAX cannot
    differentiate the result as it could the steps.
    """
    cts = _initial({number: ct for number, ct in cotangents.items() if isinstance(env[number], Batch)}, env, needs)
    cts.in_pieces = in_pieces
    dependent = _dependent(body, env)
    for step in reversed(body.steps):
        match step:
            case Node():
                _undo(step, env, cts, width, dependent)
            case Load():
                if is_inexact(env[step.out]) and step.out in cts.of:
                    memory.undo_load(step, _values(step.ins, env, width), cts.of[step.out])
            case Store():
                if is_inexact(env[step.ins[1]]):
                    stored = memory.undo_store(step, _values(step.ins[:1], env, width))
                    cts.add(step.ins[1], stored, needs.of(stored))
    return cts.of


def pull_back_shared(
    body: Body, env: Env, cotangents: Mapping[int, Any], width: int, needs: Needs = PLAIN
) -> dict[int, Any]:
    """The cotangents of shared values, summed over the records, from those of values at `Body.edge`."""
    cts = _initial({n: ct.sum(0) if isinstance(env[n], Common) else ct for n, ct in cotangents.items()}, env, needs)
    for step in reversed(body.steps):
        if isinstance(step, Node):
            _undo(step, env, cts, width, body.deferred)
    return cts.of


def _dependent(body: Body, env: Env) -> set[int]:
    """The values with a cotangent for each record. Others (integers, uniform values) are not differentiated."""
    numbers = {s.number for s in body.sources if isinstance(env[s.number], Batch) and is_inexact(env[s.number])}
    for step in body.steps:
        if isinstance(step, Node) and any(i in numbers for i in step.ins):
            numbers |= {out for out in step.outs if is_inexact(env[out]) and isinstance(env[out], Batch)}
    return numbers


def _undo(step: Node, env: Env, cts: _Cotangents, width: int, wanted: AbstractSet[int]) -> None:
    """Add the cotangents of those inputs of a step that are `wanted`."""
    outs = [k for k, out in enumerate(step.outs) if out in cts.of and is_inexact(env[out])]
    ins = [k for k, i in enumerate(step.ins) if i in wanted]
    if not outs or not ins:
        return
    out_cts = [cts.of[step.outs[k]] for k in outs]
    operands = [env[i] for i in step.ins]
    masks = [cts.needed[step.outs[k]] for k in outs if step.outs[k] in cts.needed]
    needed = cts.needs.any_of(masks) if masks else None  # None: all inputs are uniform
    costly = tuple(j for j, k in enumerate(outs) if step.outs[k] in cts.costly) if cts.in_pieces else None
    undone = _Undone(step, tuple(type(x) for x in operands), tuple(outs), tuple(ins), width, costly)
    values = [x.value for x in operands]  # type: ignore[union-attr]
    if needed is None or step.linear:
        in_cts: Iterable[Any] = undone.pull_back(out_cts, values)
    else:
        in_cts = cts.needs.apply(undone.masked, needed, out_cts, values)
    for k, ct in zip(ins, in_cts, strict=True):
        needing = None if k in undone.uniform else _needing(step, k, needed, values, cts.needs)
        cts.add(step.ins[k], ct, needing, k in undone.given_costly)


@dataclass(frozen=True)
class _Undone:
    """The pullback of a step, from the cotangents of its results `outs` to those of its inputs `ins`."""

    step: Node
    kinds: tuple[Any, ...]  # of its inputs: `Batch` or `Common`
    outs: tuple[int, ...]
    ins: tuple[int, ...]
    width: int
    costly: tuple[int, ...] | None = None  # those of `outs` whose cotangents are costly; None: not in pieces
    given_costly: set[int] = field(default_factory=set)  # those of `ins` whose cotangents turned out to be costly

    @property
    def uniform(self) -> list[int]:
        """The inputs in `ins` that all records share."""
        return [k for k in self.ins if self.kinds[k] is Common]

    def pull_back(self, out_cts: Sequence[Any], values: Sequence[Any]) -> Sequence[Any]:
        """The cotangents of the inputs, whose values are given."""
        if self.costly is not None and not self.uniform and (in_cts := self._in_pieces(out_cts, values)) is not None:
            return in_cts

        def function(*wanted: Any) -> list[Any]:
            new = dict(zip(self.ins, wanted, strict=True))
            chosen = [kind(new.get(k, x)) for k, (kind, x) in enumerate(zip(self.kinds, values, strict=True))]
            results = _batched(self.step.fn, chosen, self.width)
            return [results[k].value for k in self.outs]  # type: ignore[union-attr]

        pulled: Sequence[Any] = jax.vjp(function, *(values[k] for k in self.ins))[1](list(out_cts))
        return pulled

    def _in_pieces(self, out_cts: Sequence[Any], values: Sequence[Any]) -> Sequence[Any] | None:
        """The cotangents of the inputs by the pullback for one lane, if it is to be cut; tells which are costly."""
        assert self.costly is not None
        if not self.costly and not self.step.costly:
            return None
        if not self.step.shifts:
            self.given_costly.update(self.ins)
            return None
        count = len(self.outs)

        def pulled(*args: Any) -> Sequence[Any]:
            cts, values = args[:count], args[count:]

            def function(*wanted: Any) -> list[Any]:
                new = dict(zip(self.ins, wanted, strict=True))
                results = self.step.fn(*(new.get(k, x) for k, x in enumerate(values)))
                return [results[k] for k in self.outs]

            in_cts: Sequence[Any] = jax.vjp(function, *(values[k] for k in self.ins))[1](list(cts))
            return in_cts

        operands = [*map(Batch, out_cts), *(kind(x) for kind, x in zip(self.kinds, values, strict=True))]
        found = lane_pieces.evaluated(pulled, operands, self.width, self.costly)
        self.given_costly.update(k for k, costly in zip(self.ins, found.costly, strict=True) if costly)
        return None if found.outs is None else [spread_over(x, self.width) for x in found.outs]

    def masked(self, needed: jax.Array, out_cts: Sequence[Any], values: Sequence[Any]) -> Iterator[Any]:
        """The cotangents of the inputs, zero where `needed`, bool[records], is false."""
        if self.uniform:
            # The cotangent of a uniform input is summed over all records inside `jax.vjp`, where a single `0 * inf`
            # would spoil the sum. Records that do not need the result compute with the values of one that does.
            pairs = zip(self.kinds, values, strict=True)
            values = [x if kind is Common else _from_active_lane(x, needed) for kind, x in pairs]
        for k, ct in zip(self.ins, self.pull_back(out_cts, values), strict=True):
            mask = jnp.any(needed) if k in self.uniform else lane_mask(needed, ct)
            yield jnp.where(mask, ct, jnp.zeros((), ct.dtype))


def _needing(step: Node, k: int, needed: jax.Array | None, values: Sequence[Any], needs: Needs) -> jax.Array | None:
    """The records that need operand `k` of a step, of those that need its result."""
    if needed is None or not step.selects or k == 0:
        return needed
    condition: jax.Array = values[0]
    among: jax.Array = needs.among(needed, condition if k == 1 else ~condition)
    return among


def zero_preserving_vjp(fn: Callable[..., Any], needs: Needs = PLAIN) -> Callable[..., Any]:
    """Return `fn` with a pullback that maps zero to zero, whatever the values are."""
    wrapped: Any = jax.custom_vjp(fn)

    def masked(nonzero: jax.Array, *cts: Any) -> list[Any]:
        return [jnp.where(nonzero, ct, jnp.zeros((), ct.dtype)) for ct in cts]

    def pull(pullback: Any, cotangents: Any) -> Any:
        floats = [ct for ct in jax.tree.leaves(cotangents) if jnp.issubdtype(ct.dtype, jnp.inexact)]
        nonzero = needs.of_all(floats)
        leaves, tree = jax.tree.flatten(pullback(cotangents))
        inexact = [k for k, ct in enumerate(leaves) if jnp.issubdtype(ct.dtype, jnp.inexact)]
        new = dict(zip(inexact, needs.apply(masked, nonzero, *(leaves[k] for k in inexact)), strict=True))
        return jax.tree.unflatten(tree, [new.get(k, ct) for k, ct in enumerate(leaves)])

    wrapped.defvjp(lambda *args: jax.vjp(fn, *args), pull)
    function: Callable[..., Any] = wrapped
    return function


def zero_where_inactive(mask: jax.Array, value: Any) -> Any:
    """The value, [width, ...], where `mask`, bool[width], is true; zero elsewhere."""
    return jnp.where(lane_mask(mask, value), value, jnp.zeros((), value.dtype))


def _from_active_lane(value: Any, mask: jax.Array) -> Any:
    return jnp.where(lane_mask(mask, value), value, value[jnp.argmax(mask)][None])


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
    """Whether the value is of a floating or complex dtype, and so has a cotangent."""
    return bool(jnp.issubdtype(operand.value.dtype, jnp.inexact))  # type: ignore[union-attr]
