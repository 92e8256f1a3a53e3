"""Functions of primitives, kept while one function is compiled: compilation starts again with each new decision.

Most expressions of the user's are the same then, and so are the functions that are made of them. One is used again
where the tree, with its places in the file, and all facts about the user's function that making it reads are the same
(`FACTS`). Which functions are compiled along is a fact that differs with each decision; only the answers that were
needed have to be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType
from typing import Any

import gast

from pcbatch.contexts import setting
from pcbatch.data.functions.users_code import in_exception
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.tree import Node

FACTS = ("batched", "bound", "classes", "fn", "imports", "lifted", "nested", "node", "params", "statics")
"""The attributes of a unit that making a function of an expression may read; `node` only to tell it from a part."""

PLAIN = (str, bytes, int, bool, type(None))
PLACES = ("lineno", "col_offset", "end_lineno", "end_col_offset", "made", "coded")

Asked = list[tuple[object, bool]]  # what was asked of `unit.batched`, and whether there was no target


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """An object that is equal to itself only; being kept, its address is not used again."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True, slots=True)
class _Kept:
    """The functions that are kept, by their code, and by the expressions of which they were made; facts of units."""

    by_code: dict[Hashable, FunctionType] = field(default_factory=dict)
    by_tree: dict[Hashable, list[tuple[Asked, FunctionType]]] = field(default_factory=dict)
    facts: dict[_Same, Hashable] = field(default_factory=dict)


_kept: ContextVar[_Kept | None] = ContextVar("pcbatch_kept_primitives", default=None)


def keeping_primitives() -> AbstractContextManager[None]:
    """Keep the functions of the primitives that are made within the context; one inside of another changes nothing."""
    return setting(_kept, _kept.get() or _Kept())


def made_once(
    unit: Unit, node: Node, ins: tuple[str, ...], arity: int, make: Callable[[Unit], FunctionType]
) -> FunctionType:
    """Return the kept function of an expression that reads no nested function, or keep what `make` gives.

    Args:
        unit: The function in which the expression stands.
        node: The expression.
        ins: The variables that it reads.
        arity: How many results it has.
        make: Makes the function of a unit that notes what is asked of `unit.batched`.
    """
    store = _kept.get()
    if store is None:
        return make(unit)
    if (about := store.facts.get(_Same(unit))) is None:
        about = store.facts[_Same(unit)] = _facts(unit)
    key = (about, _tree(node), ins, arity, in_exception())
    found = store.by_tree.setdefault(key, [])
    for asked, fn in found:
        if all((unit.batched(value) is None) == none for value, none in asked):
            return fn
    questions: Asked = []

    def noted(value: object) -> Target | None:
        target = unit.batched(value)
        questions.append((value, target is None))
        return target

    fn = make(replace(unit, batched=noted))
    found.append((questions, fn))
    return fn


def _facts(unit: Unit) -> Hashable:
    """A value that is equal for units with equal `FACTS`, but for targets of batched functions and for trees."""
    first = unit.params[:1]
    return (
        *(_Same(unit.fn), first, bool(first and unit.bound.get(first[0], True)), frozenset(unit.bound)),
        *(tuple(unit.nested), _named(unit.statics), _named(unit.lifted), _named(unit.imports), _named(unit.classes)),
    )


def _named(values: Any) -> Hashable:
    return tuple((name, value if type(value) is str else _Same(value)) for name, value in values.items())


def _tree(node: Node) -> Hashable:
    """A value that is equal for equal trees at the same places."""
    return (
        type(node),
        tuple([getattr(node, name, None) for name in PLACES]),
        tuple([_part(getattr(node, name, None)) for name in node._fields]),
    )


def _part(value: Any) -> Hashable:
    if isinstance(value, gast.AST):
        return _tree(value)
    if isinstance(value, list):
        return tuple(map(_part, value))
    return (type(value), value) if type(value) in PLAIN else _Same(value)  # 0.0 is not -0.0


def kept(fn: FunctionType, constants: Collection[str]) -> FunctionType:
    """Return the kept function that is the same as `fn` in all respects, or keep this one and return it.

    `constants` are the names of its cells that nothing assigns; two of these are the same if they hold one object.
    """
    store = _kept.get()
    if store is None:
        return fn
    cells = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
    closure = tuple(id(cell.cell_contents if name in constants else cell) for name, cell in cells)
    # The function that is kept has the globals and cells, so their identities are not reused.
    return store.by_code.setdefault((_identity(fn.__code__), id(fn.__globals__), fn.__name__, closure), fn)


def _identity(code: CodeType) -> Hashable:
    """A value that is equal for equal code at the same places: in Python 3.11 `==` alone leaves out positions."""
    inner = tuple(_identity(part) for part in code.co_consts if isinstance(part, CodeType))
    return code, code.co_filename, code.co_qualname, code.co_linetable, code.co_exceptiontable, inner
