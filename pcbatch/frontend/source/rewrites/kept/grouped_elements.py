"""Loops over `itertools.groupby`, where each group is taken in one place, as loops over keys and lists.

    for k, run in groupby(xs): n = sum(run)      ==>      for k, run in groups(xs, None): n = sum(run)

The groups of Python are parts of one iterator: one that is kept is empty when the next one has begun. So each may be
named once, where all its elements are taken; a name that gets the list of them at once, `run = list(run)`, is free.
"""

from __future__ import annotations

from collections.abc import Iterator

import gast

from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.rewrites.kept.kept_generators import evaluated_once
from pcbatch.frontend.source.streams import consumer, generator_in, groups, groups_of, lazy, source, takes_list
from pcbatch.frontend.source.tree import COMPREHENSIONS, Node, constant, rebuild, supported


def write_groups(unit: Unit) -> Node:
    """Return the tree of a function with such loops; the tree itself where there are none."""
    inside: dict[str, list[list[Node]]] = {}
    wanted: list[tuple[Node, str, list[Node]]] = []
    for target, iterable, body in _loops(unit.node):
        if _is_written(unit, iterable):
            inside.setdefault(name := _name(target), []).append(body)
            if isinstance(target, gast.Name) and _reads([unit.node], name):
                continue
            if unit.decisions.expands(unit.source.loc(iterable)):
                wanted.append((iterable, name, body))
    taken = {id(iterable) for iterable, name, body in wanted if _is_taken(unit, name, body, inside[name])}
    return _rewritten(unit.node, taken) if taken else unit.node


def _rewritten(node: Node, taken: set[int]) -> Node:
    new = rebuild(node, lambda child: _rewritten(child, taken))
    if id(node) not in taken:
        return new
    keys = [*new.args[1:], *(keyword.value for keyword in new.keywords), constant(None, node)]
    return supported(groups, [new.args[0], keys[0]], node)


def _loops(tree: Node) -> Iterator[tuple[Node, Node, list[Node]]]:
    """Yield the target, the iterable and the body of each loop and each part of a comprehension, whose body may be the
    part that follows."""
    for node in gast.walk(tree):
        if isinstance(node, gast.For):
            yield node.target, node.iter, node.body
        elif isinstance(node, COMPREHENSIONS):
            elements = [node.key, node.value] if isinstance(node, gast.DictComp) else [node.elt]
            for k, part in enumerate(node.generators):
                yield part.target, part.iter, [*part.ifs, *(node.generators[k + 1 : k + 2] or elements)]


def _is_written(unit: Unit, node: Node) -> bool:
    """Whether a node is a call of `groupby` whose elements may be taken before the body of its loop runs."""
    if not groups_of(unit, node) or not node.args or any(isinstance(arg, gast.Starred) for arg in node.args):
        return False
    options = [keyword.arg for keyword in node.keywords]
    plain = options in ([], ["key"]) and len(node.args) + len(options) in (1, 2)
    return plain and not generator_in(unit, node.args[0])


def _name(target: Node) -> str:
    """The name of the group in the target of a loop, or of both key and group; empty for other targets."""
    match target:
        case gast.Name(id=str(name)):
            return name
        case gast.Tuple(elts=[_, gast.Name(id=str(name))]) | gast.List(elts=[_, gast.Name(id=str(name))]):
            return name
    return ""


def _is_taken(unit: Unit, name: str, body: list[Node], inside: list[list[Node]]) -> bool:
    """Whether the elements of a group are taken once, where they are all there; `inside`: the bodies of all loops whose
    groups have the name."""
    if not name:
        return False
    if _reads(body, name) and isinstance(first := next(s for s in body if _reads([s], name)), gast.Assign):
        if [getattr(target, "id", "") for target in first.targets] == [name] and _reads([first], name) == 1:
            return _takes(unit, first.value, name)
    reads = _reads(body, name)
    if reads > 1 or _reads([unit.node], name) != sum(_reads(other, name) for other in inside):
        return False
    return not reads or any(_takes(unit, node, name) for node in evaluated_once(body))


def _reads(nodes: list[Node], name: str) -> int:
    parts = (part for node in nodes for part in gast.walk(node))
    return sum(isinstance(p, gast.Name) and p.id == name and isinstance(p.ctx, gast.Load) for p in parts)


def _takes(unit: Unit, node: Node, name: str) -> bool:
    """Whether a node takes the elements of a group where it stands."""
    match node:
        case gast.For(iter=taken) | gast.comprehension(iter=taken) | gast.Starred(value=taken):
            sources = [taken]
        case gast.ListComp() | gast.SetComp() | gast.DictComp():
            sources = [node.generators[0].iter]
        case gast.Call() if consumer(unit, node) not in (None, "next"):
            sources = [source(unit, node)]
        case gast.Call() if takes_list(unit, node):
            sources = list(node.args)
        case _:
            return False
    return any(isinstance(part, gast.Name) and part.id == name for taken in sources for part in _through(unit, taken))


def _through(unit: Unit, node: Node) -> Iterator[Node]:
    """Yield a stream and those whose elements it hands on."""
    yield node
    if isinstance(node, gast.GeneratorExp):
        yield from _through(unit, node.generators[0].iter)
    elif lazy(unit, node) is not None or groups_of(unit, node):
        for arg in node.args:
            yield from _through(unit, arg)
