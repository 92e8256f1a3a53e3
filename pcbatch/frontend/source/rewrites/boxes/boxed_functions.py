"""The decision which objects are boxed, and the functions of a program with these boxes.

The check of ownership refuses a change of an object that has another name. Here the places of such changes are looked
up among the expressions of the program, and what makes these objects is found by a points-to analysis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any

import gast

from pcbatch.data.object_parts import is_user_code
from pcbatch.data.objects.boxes.classes import BoxValue, box_class
from pcbatch.data.objects.boxes.values import made_class
from pcbatch.decisions import NONE, Decisions
from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.errors import CompileError
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.helpers import Helpers
from pcbatch.frontend.source.locate import Source, locate
from pcbatch.frontend.source.rewrites.boxes.arguments import with_boxed_arguments
from pcbatch.frontend.source.rewrites.boxes.box_facts import CannotBox, NeedsWhole
from pcbatch.frontend.source.rewrites.boxes.flow import Flow
from pcbatch.frontend.source.rewrites.boxes.objects import Object
from pcbatch.frontend.source.rewrites.boxes.points_to import analysed
from pcbatch.frontend.source.rewrites.boxes.writer import Writer
from pcbatch.frontend.source.tree import Node

CHANGED = "PCB330"  # the code of changes of objects that have several names
IDENTITY = "PCB305"  # that of questions which object it is, and of others
UNLIKE = frozenset({"PCB301", "PCB303", "PCB304"})  # those of values without a common type, and of keys that lack
ASKED = -1  # in place of the number of objects around one that changes: a comparison asks for it
MOST_AROUND = 3
WHY = "it gets a list, a dict or a set that has several names"


Seeds = frozenset[tuple[Loc, int]]


class BoxedFunctions:
    """The functions of a program, in which some objects are boxed.

    Attributes:
        classes: the classes of the boxes.
        along: the functions in which there are boxes, without the entry.
    """

    def __init__(self, flow: Flow, seeds: Seeds) -> None:
        sources = {id(body.tree): locate(body.scope.fn).source for body in flow.bodies.values()}
        changed = [one for body in flow.bodies.values() for one in _changed(flow, body.tree, sources, seeds)]
        objects = [one for one in changed if one.sites or one.outside or one.argument]
        whole = {one for one in objects if one.argument}
        if not objects or not all(map(_can_be, objects)) or (flow.recursive and any(one.argument for one in objects)):
            raise CannotBox
        while True:
            found = _with_classes(flow, objects, sources, whole)
            writer = Writer(flow, found)
            _refuse_eager(writer, [body.tree for body in flow.bodies.values()])
            try:
                self._written = {id(body.tree): writer.function(body.tree) for body in flow.bodies.values()}
                entry = next(iter(flow.bodies.values()))
                self._written[id(entry.tree)] = with_boxed_arguments(writer, entry, self._written[id(entry.tree)])
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


def _refuse_eager(writer: Writer, trees: list[Node]) -> None:
    """Raise CannotBox for generators with boxes that go over themselves: lanes take all that they yield at once."""
    functions = [node for tree in trees for node in gast.walk(tree) if isinstance(node, gast.FunctionDef)]
    parts = {one: list(_own_nodes(one)) for one in functions}
    yields = gast.Yield | gast.YieldFrom
    yielding = [one for one in functions if any(isinstance(part, yields) for part in parts[one])]
    names = {one.name for one in yielding}
    for one in yielding:
        sources = [part.iter for part in parts[one] if isinstance(part, gast.For)]
        inner = [part for source in sources for part in gast.walk(source) if getattr(part, "id", "") in names]
        if writer.mentions(one) and (inner or any(isinstance(part, gast.YieldFrom) for part in parts[one])):
            raise CannotBox(one)


def _own_nodes(function: Node) -> Iterator[Node]:
    """Yield the nodes of a function without those of the functions in it."""
    for part in gast.iter_child_nodes(function):
        if not isinstance(part, gast.FunctionDef | gast.Lambda):
            yield part
            yield from _own_nodes(part)


def boxes_wanted(helpers: Helpers, *errors: CompileError | None) -> Decisions:
    """Return the decision to box the objects whose changes are refused; nothing where that cannot be done."""
    found = [one for error in errors if error is not None for one in error.diagnostics if one.primary is not None]
    before = dict(sorted(helpers.decisions.boxed, key=lambda one: one[1]))
    places = {one.primary.loc for one in found if one.code == CHANGED and one.primary is not None}
    around = 1 + max((before.get(loc, -1) for loc in places), default=-1) if places <= set(before) else 0
    asked = {(one.primary.loc, ASKED) for one in found if one.code == IDENTITY and one.primary is not None}
    seeds = helpers.decisions.boxed | {(loc, around) for loc in places} | asked
    if helpers.decisions.forgetful or not helpers.entry:  # a call that is made anew gives a new object
        return NONE
    if seeds == helpers.decisions.boxed and not UNLIKE.isdisjoint(one.code for one in found):
        seeds |= _late_stores(helpers)
    if seeds == helpers.decisions.boxed or around > MOST_AROUND:
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


def _solved(helpers: Helpers, seeds: Seeds) -> BoxedFunctions | None:
    flow = _flow(helpers)
    try:
        return None if flow is None else BoxedFunctions(flow, seeds)
    except CannotBox:
        return None


def _flow(helpers: Helpers) -> Flow | None:
    def found(obj: object) -> FunctionType | None:
        target = helpers.batched(obj)
        if target is not None:
            return None if target.args or target.keywords or target.nested is not None else target.fn
        return obj if isinstance(obj, FunctionType) and is_user_code(obj.__code__) else None

    (entry,) = helpers.entry
    return analysed(entry, found)


def _late_stores(helpers: Helpers) -> Seeds:
    """The places at which dicts by name get keys that they lack at some of the places that make them."""
    if (flow := _flow(helpers)) is None:
        return frozenset()
    parts = [(body, part) for body in flow.bodies.values() for part in gast.walk(body.tree)]
    return frozenset((locate(body.scope.fn).source.loc(part), 0) for body, part in parts if _is_late(flow, part))


def _is_late(flow: Flow, node: Node) -> bool:
    match node:
        case gast.Subscript(value=row, slice=gast.Constant(value=str() as key), ctx=gast.Store()) if id(row) in flow.of:
            value = flow.of[id(row)].found()
            return bool(value.sites) and _can_be(value) and key in _names(flow, value)[1]
    return False


def _can_be(value: Object) -> bool:
    return bool(value.sites or value.argument) and not (value.outside or value.fixed or value.classes)


def _names(flow: Flow, value: Object) -> tuple[tuple[str, ...], frozenset[str]]:
    """The keys of a dict by name, whose values are asked for by these alone, and those of them that it may lack, as it
    gets them later or at some of its places only; none for anything else."""
    made = [_keys_of(flow, site) for site in value.sites]
    found: Any = dict.fromkeys([*(key for keys in made for key in keys), *value.keys_known()])
    if not all(isinstance(key, str) for key in found):
        return (), frozenset()
    return tuple(found), frozenset(key for key in found if not all(key in keys for keys in made))


def _keys_of(flow: Flow, site: Node) -> list[object]:
    """The keys of the dict that a place makes: of a display, or of a copy of what displays with the same keys make;
    [None] where they are not known."""
    match site:
        case gast.Dict():
            keys = list[object]()
            for key, value in zip(site.keys, site.values, strict=True):
                keys += _keys_of_copied(flow, value) if key is None else [getattr(key, "value", None)]
            return list(dict.fromkeys(keys))
        case gast.Call(func=gast.Name(id="dict"), args=[copied], keywords=[]):
            return _keys_of_copied(flow, copied)
        case gast.Call(func=gast.Attribute(value=copied, attr="copy"), args=[], keywords=[]):
            return _keys_of_copied(flow, copied)
    return [None]


def _keys_of_copied(flow: Flow, copied: Node) -> list[object]:
    """The keys of a dict that is copied, which displays make; [None] where they are not known."""
    sites = flow.of[id(copied)].found().sites if id(copied) in flow.of else []
    plain = all(isinstance(one, gast.Dict) and None not in one.keys for one in sites)
    texts = [_keys_of(flow, one) for one in sites] if plain else []
    return texts[0] if texts and all(one == texts[0] for one in texts) else [None]


def _with_classes(
    flow: Flow, objects: Iterable[Object], sources: dict[int, Source], whole: set[Object]
) -> dict[Object, type[BoxValue]]:
    """Objects with the classes of their boxes; those of two objects that one place makes are told apart by a number."""
    found: dict[Object, type[BoxValue]] = {}
    for one in objects:
        kind, place = _place(one, sources)
        keys, late = ((), frozenset[str]()) if one in whole or not one.sites else _names(flow, one)
        number = sum(cls.pcbatch_place[1].partition(" ")[0] == place for each, cls in found.items() if each is not one)
        found.setdefault(one, box_class(kind, f"{place} {number}" if number else place, keys, late))
    return found


def _place(value: Object, sources: dict[int, Source]) -> tuple[str, str]:
    """The kind of an object, and where the first of the expressions that make it stands."""
    if not value.sites:
        return "list", "an argument"
    site = min(value.sites, key=lambda one: (one.lineno, one.col_offset))
    kind = {gast.Dict: "dict", gast.DictComp: "dict", gast.Set: "set", gast.SetComp: "set"}.get(type(site), "list")
    file = next((source.file for tree, source in sources.items()), "")
    return kind, f"{file}:{site.lineno}:{site.col_offset}"


def _changed(flow: Flow, tree: Node, sources: dict[int, Source], seeds: Seeds) -> Iterable[Object]:
    """The objects that change at some places of a function."""
    source, depths = sources[id(tree)], dict(sorted(seeds, key=lambda one: one[1]))
    for node in gast.walk(tree):
        if not hasattr(node, "lineno") or (loc := source.loc(node)) not in depths:
            continue
        asked = depths[loc] == ASKED
        for receiver in _asked(node) if asked else _given_twice(flow, node) or _receivers(node):
            part = receiver
            for _ in range(1 + max(depths[loc], 0)):
                if id(part) in flow.of:
                    yield flow.of[id(part)].found()
                part = getattr(part, "value", None)


def _given_twice(flow: Flow, node: Node) -> list[Node]:
    """The arguments of a call that may be one object, which it changes."""
    args = [arg for arg in node.args if id(arg) in flow.of] if isinstance(node, gast.Call) else []
    found = [flow.of[id(arg)].found() for arg in args]
    return [arg for arg, one in zip(args, found, strict=True) if one.sites and found.count(one) > 1]


def _asked(node: Node) -> list[Node]:
    """The operands of a question that lists of the lane cannot answer, such as `is` and `in`."""
    return [node.left, *node.comparators] if isinstance(node, gast.Compare) else []


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
