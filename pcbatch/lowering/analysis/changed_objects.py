"""The objects of variables, and the changes of them in place that Python really makes, by the types of a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import jax

from pcbatch.ir.cfg import Function, Op
from pcbatch.ir.effects import Change
from pcbatch.ir.ops import Prim
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.analysis.common_objects import INNER, OWN, Part
from pcbatch.lowering.analysis.object_levels import Levels, has_arrays, is_array, is_builtin, levels, stores_defaults
from pcbatch.lowering.typing.abstract_values import Abstract
from pcbatch.lowering.typing.inferred import Inferred
from pcbatch.lowering.typing.trace import Traced

NO_LEVELS = Levels(False, False)


def parts_at(name: str, found: Levels) -> list[Part]:
    """Return the parts of a variable for the levels of its type."""
    return [(name, level) for level, there in ((OWN, found.own), (INNER, found.inner)) if there]


class Objects:
    """The objects of the variables of some functions, which are reachable."""

    def __init__(self, inferred: Inferred, functions: Mapping[str, Function]) -> None:
        self.inferred, self.functions = inferred, functions
        self._levels: dict[Part, Levels] = {}
        self.arrays_change = any(map(self._changes_array, functions))

    def type(self, function: str, name: str) -> Abstract | None:
        """Return the type of a variable; None if no reachable code assigns it."""
        return self.inferred.types.get((function, name))

    def levels(self, function: str, name: str) -> Levels:
        """Return which objects of a variable can be changed in place."""
        found = self._levels.get((function, name))
        if found is None:
            value = self.type(function, name)
            found = self._levels[function, name] = NO_LEVELS if value is None else levels(value)
        return found

    def parts(self, function: str, name: str) -> list[Part]:
        """Return the parts of a variable that have objects."""
        return parts_at(name, self.levels(function, name))

    def _changes_array(self, name: str) -> bool:
        """Whether a function changes an element of an array: then its arrays are those of NumPy."""
        for block in self.functions[name].blocks:
            for op in block.ops:
                if isinstance(op, Prim) and any(change.sure for change in op.expr.effects.changes):
                    types = [self.type(name, op.expr.ins[change.position]) for change in op.expr.effects.changes]
                    if any(value is not None and has_arrays(value) for value in types):
                        return True
        return False

    def changes(self, function: str, label: str, k: int, op: Prim) -> tuple[Change, ...]:
        """Return the changes in place that Python really makes at an operation."""
        traced = self.inferred.traced.get((function, label, k))
        if traced is None:
            return ()
        return tuple(change for change in op.expr.effects.changes if self._is_real(function, op, change, traced))

    def brings_up_to_date(self, function: str, label: str, k: int, op: Op) -> bool:
        """Return whether an operation gives a variable what a change by another name has made of a part of it.

        A slice of a list is a new list: it is not stored back.
        """
        if not isinstance(op, Prim):
            return False
        return op.expr.effects.syncs or (op.expr.effects.back and bool(self.changes(function, label, k, op)))

    def changed_parts(self, function: str, label: str, k: int, op: Prim, change: Change) -> list[Part]:
        """Return the parts of a variable that a change may change: its own object, or one inside, or both."""
        root = op.expr.ins[change.position]
        if self._is_inside(function, op, change):
            return [(root, OWN), (root, INNER)] if stores_defaults(self.type(function, root)) else [(root, INNER)]
        traced = self.inferred.traced[function, label, k]
        mixed = change.method and not is_builtin(self.type(function, root)) and self.levels(function, root).inner
        both = mixed and self._changes_inside(function, op, change, traced)
        return [(root, OWN), (root, INNER)] if both else [(root, OWN)]

    def _is_inside(self, function: str, op: Prim, change: Change) -> bool:
        """Whether a change may be one of an object inside the variable's own, and not of that itself."""
        root = op.expr.ins[change.position]
        value = self.type(function, root)
        if value is not None and is_array(value):
            return False
        if change.inner or not change.augments or not self.levels(function, root).inner:
            return change.inner
        others = [name for k, name in enumerate(op.expr.ins) if k != change.position]
        return change.unclear or self.arrays_change or any(self.levels(function, name).own for name in others)

    def _is_real(self, function: str, op: Prim, change: Change, traced: Traced) -> bool:
        value = self.type(function, op.expr.ins[change.position])
        if value is None or levels(value) == NO_LEVELS:
            return False
        if not change.sure:
            return levels(value).own and (self.arrays_change or not is_array(value))
        return not self._passes_on(function, op, change, traced)

    def _passes_on(self, function: str, op: Prim, change: Change, traced: Traced) -> bool:
        """Whether the variable is after the operation what it was before: a method has changed nothing."""
        return next(self._changed_leaves(function, op, change, traced), None) is None

    def _changes_inside(self, function: str, op: Prim, change: Change, traced: Traced) -> bool:
        """Whether a method has changed more than attributes that are numbers."""
        return any(axes > 0 or keys > 1 for axes, keys in self._changed_leaves(function, op, change, traced))

    def _changed_leaves(self, function: str, op: Prim, change: Change, traced: Traced) -> Iterator[tuple[int, int]]:
        """Yield the axes of each array of the variable that the operation gives anew, and the number of keys that lead
        to it; many keys where the variable has another structure than before."""
        out = traced.outs[-1]
        ins = [self.type(function, name) for name in op.expr.ins]
        counts = [0 if value is None else len(value.arrays) for value in ins]
        first = sum(counts[: change.position])
        given = traced.closed.jaxpr.invars[first : first + counts[change.position]]
        before = sum(len(value.arrays) for value in traced.outs[:-1])
        new = traced.closed.jaxpr.outvars[before : before + len(out.arrays)]
        old = ins[change.position]
        if old is None or (old.tree, old.leaves) != (out.tree, out.leaves):
            yield 0, 2
            return
        paths = jax.tree_util.tree_flatten_with_path(jax.tree.unflatten(old.tree, range(len(old.leaves))))[0]
        keys = [len(path) for path, k in paths if isinstance(old.leaves[k], ArrayType)]
        for one, other, type_, count in zip(given, new, old.arrays, keys, strict=True):
            if one is not other:
                yield len(type_.shape), count
