"""Generators that `zip` and `map` ask in turns with others: objects stand for them, or nobody sees that lists do.

for a, b in zip(evens(), odds()): ...        ==>      two objects, each of which goes on where it stood
"""

from __future__ import annotations

import gast

from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.changing_methods import changes_arguments
from pcbatch.frontend.source.generators import generator
from pcbatch.frontend.source.locate import locate
from pcbatch.frontend.source.rewrites.kept.kept_generators import keep_all
from pcbatch.frontend.source.rewrites.method_lookup import ends_unseen
from pcbatch.frontend.source.streams import generator_in
from pcbatch.frontend.source.tree import Node

TURNS = "iterators of which `zip` takes elements in turns"
TURNS_HELP = "make lists of all but one of them, `list(...)`, if they end"


def require_turns(b: Builder, node: Node, listed: bool = True) -> None:
    """Have what `zip` asks in turns with others kept as an object, and refuse what cannot be.

    Args:
        b: the builder.
        node: one of the iterables.
        listed: whether it becomes a list otherwise, which is as good where nobody sees when its elements are made.

    Raises:
        Restart: the generators of a function are to be kept.
    """
    if not generator_in(b.unit, node):
        return
    if generator(b.unit, node) is not None:
        keep_all(b.unit, node)
    made = [target for part in gast.walk(node) if (target := generator(b.unit, part)) is not None]
    if not (listed and made and all(_as_list(b, target) for target in made)):
        b.faults.add("PCB305", TURNS, node, helps=(TURNS_HELP,))


def _as_list(b: Builder, target: Target) -> bool:
    """Whether nobody sees that all elements of a generator are made before the first one is used."""
    if target.nested is not None:
        return not target.returned and ends_unseen(target.nested.node)
    return ends_unseen(locate(target.fn).node) and not changes_arguments(b.unit, target.fn)
