"""The decision which objects are boxed, and the functions of a program with these boxes.

The check of ownership refuses a change of an object that has another name. Here the places of such changes are looked
up among the expressions of the program, and what makes these objects is found by a points-to analysis.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType

import gast

from pcbatch.data.object_parts import is_user_code
from pcbatch.data.objects.boxes import BoxValue, box_class, made_class
from pcbatch.decisions import NONE, Decisions
from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.errors import CompileError
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.helpers import Helpers
from pcbatch.frontend.source.locate import Source, locate
from pcbatch.frontend.source.rewrites.boxes.box_facts import CannotBox, NeedsWhole
from pcbatch.frontend.source.rewrites.boxes.flow import Flow
from pcbatch.frontend.source.rewrites.boxes.objects import Object
from pcbatch.frontend.source.rewrites.boxes.points_to import analysed
from pcbatch.frontend.source.rewrites.boxes.writer import Writer
from pcbatch.frontend.source.tree import Node

CODE = "PCB330"
WHY = "it gets a list, a dict or a set that has several names"


class BoxedFunctions:
    """The functions of a program, in which some objects are boxed.

    Attributes:
        classes: the classes of the boxes.
        along: the functions in which there are boxes, without the entry.
    """

    def __init__(self, flow: Flow, seeds: frozenset[Loc]) -> None:
        sources = {id(body.tree): locate(body.scope.fn).source for body in flow.bodies.values()}
        changed = [one for body in flow.bodies.values() for one in _changed(flow, body.tree, sources, seeds)]
        objects = [one for one in changed if one.sites or one.outside]
        whole = set[Object]()
        if not objects or not all(map(_can_be, objects)):
            raise CannotBox
        while True:
            found = {one: box_class(*_place(one, sources), () if one in whole else _names(one)) for one in objects}
            writer = Writer(flow, found)
            try:
                self._written = {id(body.tree): writer.function(body.tree) for body in flow.bodies.values()}
                break
            except NeedsWhole as needed:
                whole.add(needed.value)
        self._kept = flow  # whose trees the numbers belong to
        self.classes: tuple[type[BoxValue], ...] = tuple(found.values())
        bodies = list(flow.bodies.values())
        self.along = [body.scope.fn for body in bodies[1:] if writer.mentions(body.tree)]

    def written(self, tree: Node) -> Node:
        """Return the tree of a function with the boxes."""
        return self._written.get(id(tree), tree)


def boxes_wanted(helpers: Helpers, error: CompileError) -> Decisions:
    """Return the decision to box the objects whose changes are refused; nothing where that cannot be done."""
    refused = [one.primary.loc for one in error.diagnostics if one.code == CODE and one.primary is not None]
    seeds = helpers.decisions.boxed | frozenset(refused)
    if helpers.entry is None or seeds == helpers.decisions.boxed:
        return NONE
    if (functions := _solved(helpers, seeds)) is None:
        return NONE
    for fn in functions.along:
        if helpers.batched(fn) is None and not helpers.covers(fn.__code__) and not helpers.want(fn.__code__, None, WHY):
            return NONE
    return Decisions(boxed=seeds, made=frozenset(map(made_class, functions.classes))) | helpers.wants


def write_boxes(unit: Unit) -> Node:
    """Return the tree of a function in which objects with several names are boxed; the tree itself without any."""
    helpers = unit.helpers
    if not helpers.decisions.boxed:
        return unit.node
    if not helpers.boxes:
        helpers.boxes.append(_solved(helpers, helpers.decisions.boxed))
    functions = helpers.boxes[0]
    return unit.node if functions is None else functions.written(unit.node)


def _solved(helpers: Helpers, seeds: frozenset[Loc]) -> BoxedFunctions | None:
    def found(obj: object) -> FunctionType | None:
        target = helpers.batched(obj)
        if target is not None:
            return None if target.args or target.keywords or target.nested is not None else target.fn
        return obj if isinstance(obj, FunctionType) and is_user_code(obj.__code__) else None

    assert helpers.entry is not None
    flow = analysed(helpers.entry, found)
    try:
        return None if flow is None else BoxedFunctions(flow, seeds)
    except CannotBox:
        return None


def _can_be(value: Object) -> bool:
    return bool(value.sites) and not (value.outside or value.fixed or value.classes)


def _names(value: Object) -> tuple[str, ...]:
    """The keys of a dict by name, whose values are asked for by these alone; none for anything else."""
    keys = value.keys_known()
    texts = sorted(key for key in keys if isinstance(key, str))
    same = all(
        isinstance(site, gast.Dict)
        and {key.value if isinstance(key, gast.Constant) else None for key in site.keys} == keys
        for site in value.sites
    )
    return tuple(texts) if same and len(texts) == len(keys) else ()


def _place(value: Object, sources: dict[int, Source]) -> tuple[str, str]:
    """The kind of an object, and where the first of the expressions that make it stands."""
    site = min(value.sites, key=lambda one: (one.lineno, one.col_offset))
    kind = {gast.Dict: "dict", gast.DictComp: "dict", gast.Set: "set", gast.SetComp: "set"}.get(type(site), "list")
    file = next((source.file for tree, source in sources.items()), "")
    return kind, f"{file}:{site.lineno}:{site.col_offset}"


def _changed(flow: Flow, tree: Node, sources: dict[int, Source], seeds: frozenset[Loc]) -> Iterable[Object]:
    """The objects that change at some places of a function."""
    source = sources[id(tree)]
    for node in gast.walk(tree):
        if isinstance(node, gast.expr | gast.stmt) and source.loc(node) in seeds:
            for part in _receivers(node):
                if id(part) in flow.of:
                    yield flow.of[id(part)].found()


def _receivers(node: Node) -> list[Node]:
    """The expressions of the objects that a statement or an expression changes."""
    match node:
        case gast.Call(func=gast.Attribute(value=receiver)):
            return [receiver]
        case gast.Call(args=[first, *_]):
            return [first]
        case gast.Subscript(value=value):
            return [value]
        case gast.AugAssign(target=gast.Subscript(value=value)):
            return [value]
        case gast.AugAssign(target=target):
            return [target]
        case gast.Assign(targets=targets) | gast.Delete(targets=targets):
            return [part for target in targets for part in _receivers(target)]
        case gast.Tuple(elts=items):
            return [part for item in items for part in _receivers(item)]
    return []
