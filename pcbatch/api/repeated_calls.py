"""Calls that repeat an earlier one with other arrays: what was found out of its arguments holds again.

To check and flatten arguments takes the host half a millisecond, as long as a small run. Where all leaves are arrays of
JAX on one device, the outcome depends on nothing but their structure and their types.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

from pcbatch.call.arguments import Arguments
from pcbatch.compiler.program import Program
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.pytree import flatten
from pcbatch.records.tables import TABLES

MOST = 256  # calls that are remembered; each number of lanes is one
NUMBERS = "biufc"  # the kinds of NumPy's dtypes whose arrays JAX takes as they are
_NUMPY = frozenset({np.ndarray, *(kind for kind in np.sctypeDict.values() if issubclass(kind, np.number | np.bool_))})
_arrays: set[type] = set()  # the classes of concrete arrays that have been seen; `isinstance` takes longer


@dataclass(frozen=True, slots=True)
class CallPlan:
    """The outcome of a call's arguments, less the arrays, and the program that it ran.

    Attributes:
        call: the arguments, without arrays.
        places: by parameter, which leaves of the call are its arrays.
        same: which leaves are the same object, if that matters: tables are told apart by their columns.
        program: the program.
    """

    call: Arguments
    places: Mapping[str, tuple[int, ...]]
    same: tuple[int, ...] | None
    program: Program

    def arguments(self, leaves: Sequence[Any]) -> Arguments:
        """Return the arguments of a call with these leaves."""
        return replace(self.call, arrays={name: tuple([leaves[k] for k in at]) for name, at in self.places.items()})


@dataclass(slots=True)
class RepeatedCalls:
    """The plans of one function's calls, by `key_of` them."""

    plans: dict[Hashable, CallPlan] = field(default_factory=dict)

    def find(self, key: Hashable, leaves: Sequence[Any]) -> CallPlan | None:
        """Return the plan of a call, if there is one."""
        try:
            plan = self.plans.get(key)
        except (TypeError, ValueError):  # static parts of the user's that have no hash, or no truth value of `==`
            return None
        return None if plan is None or (plan.same is not None and plan.same != _same(leaves)) else plan

    def remember(self, key: Hashable, leaves: Sequence[Any], call: Arguments, program: Program) -> None:
        """Keep a plan of a call, if another one with this key is sure to be like it."""
        # Captured values are of one trace; containers that grow lead to other programs; defaults may be changed.
        if program.captures or program.may_be_full or call.mapped.keys() != call.types.keys():
            return
        if not all(isinstance(leaf, ArrayType) for type_ in call.types.values() for leaf in type_.leaves):
            return
        places, same = {id(leaf): k for k, leaf in enumerate(leaves)}, _same(leaves)
        if any(id(array) not in places for arrays in call.arrays.values() for array in arrays):
            return  # it was made of a leaf
        if TABLES not in call.types and len(places) < len(leaves):
            return  # which of the equal ones is meant?
        if len(self.plans) >= MOST:
            self.plans.clear()
        found = {name: tuple([places[id(array)] for array in arrays]) for name, arrays in call.arrays.items()}
        local = replace(call, arrays={}, on_one_device=True)
        try:
            self.plans[key] = CallPlan(local, found, same if TABLES in call.types else None, program)
        except (TypeError, ValueError):
            return


def without_numpy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments with NumPy's arrays of numbers as arrays of JAX; what is one object stays one.

    They stay as they are where a pytree has dicts, whose order would be lost.
    """
    values = (args, tuple(kwargs.values()))
    try:
        leaves, tree = jax.tree.flatten(values)
    except (TypeError, ValueError):  # no pytree
        return args, kwargs
    if not any(type(leaf) in _NUMPY for leaf in leaves) or _has_dicts(tree):
        return args, kwargs
    args, rest = jax.tree.unflatten(tree, _of_jax(leaves))
    return args, dict(zip(kwargs, rest, strict=True))


def key_of(args: tuple[Any, ...], kwargs: dict[str, Any], rest: Hashable) -> tuple[list[Any], Hashable | None]:
    """Return the leaves of a call's arguments, and what the outcome depends on; None if it depends on more than that.

    Args:
        args, kwargs: as the user passes them.
        rest: what it depends on besides.
    """
    try:
        leaves, tree = jax.tree.flatten((args, tuple(kwargs.values())))
    except (TypeError, ValueError):  # no pytree
        return [], None
    types = []
    for leaf in leaves:
        if type(leaf) not in _arrays and not _is_array(leaf):
            return leaves, None
        if type(leaf.sharding) is not SingleDeviceSharding:
            return leaves, None
        types.append(jax.typeof(leaf))
    order = _order((args, tuple(kwargs.values()))) if _has_dicts(tree) else ()
    return leaves, (tree, tuple(types), tuple(kwargs), order, rest)


def _of_jax(leaves: list[Any]) -> list[Any]:
    made: dict[int, Any] = {}
    for leaf in leaves:
        if type(leaf) in _NUMPY and leaf.dtype.kind in NUMBERS and id(leaf) not in made:
            made[id(leaf)] = jnp.asarray(leaf)
    return [made.get(id(leaf), leaf) for leaf in leaves]


def _is_array(leaf: Any) -> bool:
    if isinstance(leaf, jax.core.Tracer) or not isinstance(leaf, jax.Array):
        return False
    _arrays.add(type(leaf))
    return True


@lru_cache(maxsize=4096)
def _has_dicts(tree: Any) -> bool:
    """Return whether a structure has dicts, of whose order JAX says nothing, or nodes that may hide some."""
    node = tree.node_data()
    plain = node is None or issubclass(node[0], tuple | list)
    return not plain or any(map(_has_dicts, tree.children()))


def _order(value: Any) -> Hashable:
    """Return the structure with the order of the keys of all dicts."""
    kind = type(value)
    if kind in _arrays:
        return None
    if kind is dict:
        return tuple(value), tuple([_order(part) for part in value.values()])
    if issubclass(kind, tuple | list):  # parts of other kinds are not known
        return tuple([_order(part) for part in value])
    tree: Hashable = flatten(value)[1]
    return tree


def _same(leaves: Sequence[Any]) -> tuple[int, ...]:
    """Return, for each leaf, the number of the first one that is the same object."""
    first: dict[int, int] = {}
    return tuple([first.setdefault(id(leaf), k) for k, leaf in enumerate(leaves)])
