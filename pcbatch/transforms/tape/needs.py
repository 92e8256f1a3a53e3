"""Needs: the records, or lanes, that need a pullback, because a cotangent that enters is not zero.

Pullbacks are masked by them (`block_vjp.py`). Where cotangents have tangents, a record whose cotangent happens to be
zero needs the pullback all the same if the tangent is not zero: the derivative of `w * y` by `y` is zero at `w == 0`,
and yet depends on `w`. JAX shows no function its own tangents, so needs are numbers there whose tangents are the needs
of the tangents, and a masked function has a derivative that is masked by both (`_masked`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

Raw = Callable[..., Iterable[Any]]  # of a mask and arrays
_Component = tuple[Any, ...]  # arrays; None: zero


@dataclass(frozen=True)
class Needs:
    """The kind of needs: booleans, or numbers whose tangents are needs too if cotangents have `tangents`."""

    tangents: bool = False

    def of(self, ct: Any) -> jax.Array:
        """The needs of records for a cotangent, [records, ...]."""
        return _mark(ct) if self.tangents else any_in_record([ct])

    def of_any(self, cts: Sequence[Any]) -> jax.Array:
        """The needs of records for cotangents, [records, ...] each."""
        return reduce(jnp.maximum, map(_mark, cts)) if self.tangents else any_in_record(cts)

    def of_all(self, cts: Sequence[Any]) -> jax.Array:
        """The need for cotangents of any shapes, a scalar."""
        if self.tangents:
            return reduce(jnp.maximum, (_mark(ct.reshape(1, -1))[0] for ct in cts), jnp.zeros((), jnp.float32))
        return reduce(jnp.logical_or, (jnp.any(ct != 0) for ct in cts), jnp.zeros((), bool))

    def certain(self, mask: Any) -> Any:
        """The needs of the records in `mask`, bool[records], whatever their cotangents are."""
        return mask.astype(jnp.float32) if self.tangents else mask

    def either(self, one: Any, other: Any) -> Any:
        """The records that are in one of two needs."""
        return jnp.maximum(one, other) if self.tangents else one | other

    def any_of(self, needs: Sequence[Any]) -> Any:
        """The records that are in one of several needs."""
        return reduce(jnp.maximum if self.tangents else jnp.logical_or, needs)

    def among(self, needs: Any, mask: Any) -> Any:
        """The needs of the records in `mask`, bool[records]."""
        return jnp.where(mask, needs, jnp.zeros((), needs.dtype)) if self.tangents else needs & mask

    def apply(self, raw: Raw, needs: Any, *args: Any) -> Iterable[Any]:
        """`raw(mask, *args)`, with the needs as a mask. It closes over no array that has a tangent."""
        return _masked(raw, 0)((needs,), (args,))[0] if self.tangents else raw(needs, *args)


PLAIN = Needs()


def any_in_record(cts: Sequence[Any]) -> jax.Array:
    """bool[records]: whether some cotangent of the record is not zero."""
    return reduce(jnp.logical_or, (jnp.any((ct != 0).reshape(ct.shape[0], -1), axis=1) for ct in cts))


@jax.custom_jvp
def _mark(ct: Any) -> jax.Array:
    return any_in_record([ct]).astype(jnp.float32)


@_mark.defjvp
def _mark_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    return _mark(*primals), _mark(*tangents)


def _masked(raw: Raw, order: int) -> Any:
    """The tangents of `raw` of this order, masked by all needs.

    It takes `2**order` needs and as many components: the arguments of `raw`, then their tangents, then the tangents of
    all those, and so on. Results are components too.
    """

    def function(needs: Sequence[Any], components: Sequence[_Component]) -> list[Any]:
        mask = reduce(jnp.logical_or, (n != 0 for n in needs if n is not None))
        return _pushed(lambda *args: list(raw(mask, *args)), components)

    wrapped: Any = jax.custom_jvp(function)

    def rule(primals: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
        (needs, components), (of_needs, of_components) = primals, _without_zeros(tangents)
        outs = _masked(raw, order + 1)((*needs, *of_needs), (*components, *of_components))
        return outs[: 2**order], outs[2**order :]

    wrapped.defjvp(rule, symbolic_zeros=True)
    return wrapped


def _without_zeros(tangents: Any) -> Any:
    """Tangents with None for those that are zero by their type or their origin."""
    return jax.tree.map(
        lambda t: None if isinstance(t, SymbolicZero) else t, tangents, is_leaf=lambda t: isinstance(t, SymbolicZero)
    )


def _pushed(f: Callable[..., list[Any]], components: Sequence[_Component]) -> list[Any]:
    """The components of the results of `f`, from those of its arguments."""
    if len(components) == 1:
        return [f(*components[0])]
    half = len(components) // 2
    leaves, tree = jax.tree.flatten(components[:half], is_leaf=lambda x: x is None)
    tangents = jax.tree.leaves(components[half:], is_leaf=lambda x: x is None)
    moved = [k for k, t in enumerate(tangents) if t is not None]

    def primal(*values: Any) -> list[Any]:
        new = dict(zip(moved, values, strict=True))
        return _pushed(f, jax.tree.unflatten(tree, [new.get(k, x) for k, x in enumerate(leaves)]))

    outs, of_outs = jax.jvp(primal, [leaves[k] for k in moved], [tangents[k] for k in moved])
    return [*outs, *of_outs]
