"""Trees of forks: the ends of blocks of stack and task programs, and the ways in which a task begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Generic, TypeVar

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.roles import Part, Read

LeafT = TypeVar("LeafT")
LeafT_co = TypeVar("LeafT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Fork(Generic[LeafT_co]):
    """One of two edges, or ways, by a condition; each may itself be a fork.

    All conditions of a block are read at its end, and all its pushes are written, whichever edge is taken. A condition
    of a way in which a task begins may be read there as well, since a variable has one value.
    """

    cond: Read
    on_true: Annotated[LeafT_co | Fork[LeafT_co], Part]
    on_false: Annotated[LeafT_co | Fork[LeafT_co], Part]
    loc: Loc | None = field(default=None, compare=False)


def leaves(tree: LeafT | Fork[LeafT]) -> tuple[LeafT, ...]:
    """The leaves of a tree of forks, left to right."""
    return leaves(tree.on_true) + leaves(tree.on_false) if isinstance(tree, Fork) else (tree,)


def conditions(tree: Any) -> tuple[str, ...]:
    """The variables that choose among the leaves of a tree of forks, with repetitions."""
    if not isinstance(tree, Fork):
        return ()
    return (tree.cond, *conditions(tree.on_true), *conditions(tree.on_false))


def map_leaves(tree: LeafT | Fork[LeafT], new: Callable[[LeafT], LeafT | Fork[LeafT]]) -> LeafT | Fork[LeafT]:
    """Replace the leaves of a tree of forks."""
    if not isinstance(tree, Fork):
        return new(tree)
    return replace(tree, on_true=map_leaves(tree.on_true, new), on_false=map_leaves(tree.on_false, new))
