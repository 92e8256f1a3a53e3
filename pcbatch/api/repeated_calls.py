"""Calls that repeat an earlier one with other arrays: what was found out of its arguments holds again.

To check and flatten arguments takes the host half a millisecond, as long as a small run. Where all leaves are arrays on
one device, or numbers, the outcome depends on nothing but their structure and their types. So does the run itself where
it is one program (`runtime/execute/direct_run.py`): such a call asks the device once, for the statuses of its lanes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

from pcbatch.call.arguments import Arguments
from pcbatch.compiler.growth import may_grow
from pcbatch.compiler.program import Program
from pcbatch.data.host import ragged_forms
from pcbatch.data.host.host_forms import replaced
from pcbatch.data.host.ragged import Ragged, enters_lanes, shortened
from pcbatch.data.objects.tables import TABLES
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.pytree import flatten
from pcbatch.runtime.execute.direct_run import DirectRun, Outputs
from pcbatch.runtime.vm.raw_result import RawResult
from pcbatch.runtime.vm.status import Status

MOST = 256  # calls that are remembered; each number of lanes is one
NUMBERS = "biufc"  # the kinds of NumPy's dtypes whose arrays JAX takes as they are
_NUMPY = frozenset({np.ndarray, *(kind for kind in np.sctypeDict.values() if issubclass(kind, np.number | np.bool_))})
_config: Any = jax.config  # untyped in JAX
_PYTHON = frozenset({bool, int, float, complex})
_arrays: set[type] = set()  # the classes of concrete arrays that have been seen; `isinstance` takes longer


@dataclass(frozen=True, slots=True)
class KnownCall:
    """The outcome of a call's arguments, less the arrays, and the program that it ran.

    Attributes:
        call: the arguments, without arrays.
        places: by parameter, which leaves of the call are its arrays.
        same: which leaves are the same object, if that matters: tables are told apart by their columns.
        program: the program.
        direct: its run, if that is decided.
        depth: the depth of stacks that runs of the program had needed by then.
        order: the leaves that are the arguments of the run.
        tree: the structure of the value, before lists in it are cut; None: more than its leaves is looked at.
    """

    call: Arguments
    places: Mapping[str, tuple[int, ...]]
    same: tuple[int, ...] | None
    program: Program
    direct: DirectRun | None
    depth: int
    order: tuple[int, ...]
    tree: Any


@dataclass(frozen=True, slots=True)
class RepeatedCall:
    """A call that has a plan.

    Attributes:
        plan: the plan.
        leaves: the leaves of its arguments, as the user passes them.
    """

    plan: KnownCall
    leaves: Sequence[Any]

    def arguments(self) -> Arguments:
        """Return the arguments as they are passed, for messages and results."""
        return self._with(self.leaves)

    def on_device(self) -> Arguments:
        """Return the arguments as `prepare` makes them.

        Raises:
            OverflowError: a number that JAX cannot hold.
        """
        return self._with([jnp.asarray(leaf) if type(leaf) not in _arrays else leaf for leaf in self.leaves])

    def _with(self, leaves: Sequence[Any]) -> Arguments:
        c, places = self.plan.call, self.plan.places.items()
        arrays = {name: tuple([leaves[k] for k in at]) for name, at in places}
        # Not by `dataclasses.replace`, which takes longer.
        return Arguments(c.types, c.shared, arrays, c.mapped, c.lanes, c.objects, True, c.copied, c.alone)

    def run(self) -> DecidedRun | None:
        """Return the run if it is decided; None where it is not, or has ended in an error."""
        direct, leaves = self.plan.direct, self.leaves
        if direct is None:
            return None
        try:
            return DecidedRun(self, direct, direct.program(*[leaves[k] for k in self.plan.order]))
        except Exception:  # a run in which nothing is decided names the user's line
            return None


@dataclass(frozen=True, slots=True)
class DecidedRun:
    """A run that was decided before it began. Its methods wait for it, but `ended`.

    Attributes:
        call: the call.
        direct: its run.
        outputs: what the program of that has given.
    """

    call: RepeatedCall
    direct: DirectRun
    outputs: Outputs

    def has_failed(self) -> bool:
        """Return whether a lane has not returned."""
        return bool(np.count_nonzero(np.asarray(self.outputs[1])))

    def lacks_room(self) -> bool:
        """Return whether a run is to follow, with more room for calls or in containers."""
        program, grows = self.call.plan.program, self.direct.grows
        if not (grows or program.may_be_full) or not self.has_failed():
            return False
        status = np.asarray(self.outputs[1])
        deep, full = (bool((status == int(kind)).any()) for kind in (Status.STACK_FULL, Status.LIST_FULL))
        return (grows and deep) or (may_grow(program) and full)

    def value(self, by_lane: bool = False) -> Any:
        """Return the value of a call whose lanes have all returned; `by_lane`: lanes are its first axis."""
        plan = self.call.plan
        if plan.tree is not None:
            value = plan.tree.unflatten(self.outputs[0])
            return shortened(value) if ragged_forms.places(plan.tree) else value
        return plan.program.value(self.direct.raw(self.outputs), self.call.arguments(), by_lane)

    def ended(self) -> tuple[Program, Arguments, RawResult]:
        """Return what any run leaves: the program, the arguments and the raw result."""
        return self.call.plan.program, self.call.arguments(), self.direct.raw(self.outputs)


@dataclass(slots=True)
class RepeatedCalls:
    """The plans of one function's calls, by `key_of` them; None where there is none to be made."""

    plans: dict[Hashable, KnownCall | None] = field(default_factory=dict)

    def find(self, key: Hashable | None, leaves: Sequence[Any]) -> RepeatedCall | None:
        """Return a call with its plan, if there is one."""
        try:
            plan = None if key is None else self.plans.get(key)
        except (TypeError, ValueError):  # static parts of the user's that have no hash, or no truth value of `==`
            return None
        if plan is None or (plan.same is not None and plan.same != _same(leaves)):
            return None
        if plan.direct is not None and plan.depth != (depth := plan.program.executable.depth):
            plan = self.plans[key] = replace(
                plan, direct=plan.program.direct(plan.call, plan.direct.mapped), depth=depth
            )
        return RepeatedCall(plan, leaves)

    def may_plan(self, key: Hashable | None) -> bool:
        """Return whether a plan of a call is worth an attempt, the last one unless it is remembered."""
        try:
            if key is None or self.plans.get(key, key) is None:
                return False
        except (TypeError, ValueError):
            return False
        if len(self.plans) >= MOST:
            self.plans.clear()
        self.plans[key] = None
        return True

    def remember(
        self, key: Hashable, leaves: Sequence[Any], call: Arguments, program: Program, direct: DirectRun | None
    ) -> None:
        """Keep a plan of a call whose leaves are arrays of JAX, if another one with this key is sure to be like it."""
        places, same = {id(leaf): k for k, leaf in enumerate(leaves)}, _same(leaves)
        if any(id(array) not in places for arrays in call.arrays.values() for array in arrays):
            return  # it was made of a leaf
        found = {name: tuple([places[id(array)] for array in arrays]) for name, arrays in call.arrays.items()}
        local, order = replace(call, arrays={}), tuple(program.args(replace(call, arrays=found)).values())
        tables, depth = same if TABLES in call.types else None, program.executable.depth
        self.plans[key] = KnownCall(local, found, tables, program, direct, depth, order, program.plain_tree)


def repeatable(call: Arguments, program: Program) -> bool:
    """Return whether another call with the same key may be like this one, if its leaves become arrays."""
    # Captured values are of one trace; defaults may be changed.
    if program.captures or call.mapped.keys() != call.types.keys():
        return False
    return all(isinstance(leaf, ArrayType) for type_ in call.types.values() for leaf in type_.leaves)


def with_room(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call that has a key with the room that lists and texts get in lanes."""

    def room(form: Any) -> Any:
        leaves, tree = jax.tree.flatten(form)
        roomy = ragged_forms.with_room(leaves, ragged_forms.places(tree) or ())
        assert roomy is not None  # else the call had no key
        return jax.tree.unflatten(tree, roomy)

    args, kwargs = replaced((args, kwargs), enters_lanes, room)
    return args, kwargs


def with_jax_arrays(
    args: tuple[Any, ...], kwargs: dict[str, Any], copied: bool
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments with arrays of JAX for those of NumPy and for numbers.

    Args:
        args, kwargs: of a call that has a key.
        copied: whether an array that is there several times becomes several.
    """
    made: dict[int, Any] = {}

    def of_jax(leaf: Any) -> Any:
        if id(leaf) not in made or copied:
            again = id(leaf) in made and type(leaf) in _arrays
            made[id(leaf)] = leaf.copy() if again else jnp.asarray(leaf)
        return made[id(leaf)]

    args, kwargs = replaced((args, kwargs), lambda leaf: type(leaf) in _arrays | _NUMPY | _PYTHON, of_jax)
    return args, kwargs


def key_of(args: tuple[Any, ...], kwargs: dict[str, Any], rest: Hashable) -> tuple[list[Any], Hashable | None]:
    """Return the leaves of a call's arguments, with the room that lists and texts get in lanes, and what the outcome
    depends on; None if it depends on more than that, as on the contents of dicts.

    Args:
        args, kwargs: as the user passes them.
        rest: what it depends on besides.
    """
    try:
        leaves, tree = jax.tree.flatten((args, tuple(kwargs.values())))
        found = ragged_forms.places(tree)
    except (TypeError, ValueError):  # no pytree
        return [], None
    roomy = None if found is None else ragged_forms.with_room(leaves, found)
    if roomy is None:
        return [], None
    leaves, types = roomy, []
    for leaf in leaves:
        kind = type(leaf)
        if kind in _arrays or (kind not in _NUMPY and kind not in _PYTHON and _is_array(leaf)):
            if type(leaf.sharding) is not SingleDeviceSharding:
                return leaves, None
            types.append(leaf.aval)
        elif kind in _PYTHON:
            types.append(kind)
        elif kind in _NUMPY and leaf.dtype.kind in NUMBERS:
            types.append(_type_of(leaf.shape, leaf.dtype, _config.jax_enable_x64))
        else:
            return leaves, None
    if None in types:
        return leaves, None
    order = _order((args, tuple(kwargs.values()))) if _has_dicts(tree) else ()
    return leaves, (tree, tuple(types), tuple(kwargs), order, rest)


@lru_cache(maxsize=4096)
def _type_of(shape: tuple[int, ...], dtype: np.dtype, x64: bool) -> Any:
    """Return the type that an array of NumPy gets in a JAX with or without 64 bits; None: it has none."""
    with suppress(TypeError):
        return jax.typeof(np.broadcast_to(np.zeros((), dtype), shape))
    return None


def _is_array(leaf: Any) -> bool:
    if isinstance(leaf, jax.core.Tracer) or not isinstance(leaf, jax.Array):
        return False
    _arrays.add(type(leaf))
    return True


@lru_cache(maxsize=4096)
def _has_dicts(tree: Any) -> bool:
    """Return whether a structure has dicts, of whose order JAX says nothing, or nodes that may hide some."""
    node = tree.node_data()
    plain = node is None or issubclass(node[0], tuple | list | Ragged)
    return not plain or any(map(_has_dicts, tree.children()))


def _order(value: Any) -> Hashable:
    """Return the structure with the order of the keys of all dicts."""
    kind = type(value)
    if kind in _arrays or kind in _NUMPY or kind in _PYTHON:
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
