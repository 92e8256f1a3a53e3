"""Statements of functions with boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gast

from pcbatch.data.objects.boxes.late_items import item_there, item_to_store
from pcbatch.frontend.source.rewrites.boxes import late_keys
from pcbatch.frontend.source.rewrites.boxes.box_facts import CannotBox, is_quiet, is_simple
from pcbatch.frontend.source.tree import Node, constant, is_supported, load, read_of, target_of, with_fields

if TYPE_CHECKING:
    from pcbatch.frontend.source.rewrites.boxes.writer import Writer


def statements(w: Writer, nodes: list[Node]) -> list[Node]:
    """Write some statements; where a choice or a call gives the object that one changes, that has a name first."""
    nodes = [one for node in nodes for one in late_keys.stores_of(w, node) or [node]]
    return [one for node in nodes for one in (_in_order(w, node) or _with_name(w, _statement(w, node)))]


def _in_order(w: Writer, node: Node) -> list[Node]:
    """A change of a box whose operands may store another one in its place: the box is taken before, as Python does.

    None of the statements for others.
    """
    match node:
        case gast.Expr(value=gast.Call(func=gast.Attribute(value=receiver)) as called):
            operands = [*called.args, *(one.value for one in called.keywords)]
        case gast.Assign(value=gast.Call(func=gast.Attribute(value=receiver)) as called):
            operands = [*called.args, *(one.value for one in called.keywords)]
        case gast.AugAssign(target=receiver, value=operand):
            operands = [operand]
        case _:
            return []
    if all(map(is_quiet, operands)):
        return []
    if not w.is_boxed(receiver):
        w.refuse_boxes_on_way(receiver)
        return []
    name = w.new_name("held")
    taken = w.value(receiver) if isinstance(receiver.ctx, gast.Load) else _place(w, receiver)
    given = gast.Assign(targets=[target_of(name, receiver)], value=taken, type_comment=None)
    inside = w.held(receiver, load(name, receiver))
    if isinstance(node, gast.AugAssign):
        back = gast.Assign(targets=[written_target(w, receiver)], value=load(name, receiver), type_comment=None)
        target = with_fields(inside, ctx=gast.Store())
        changed = [with_fields(node, target=target, value=w.read(node.value)), gast.copy_location(back, node)]
    else:
        written = _statement(w, with_fields(node, value=constant(None, node)))
        method = w.method_of(called, with_fields(called.func, value=inside))
        changed = [with_fields(written, value=method)]
    return [gast.copy_location(given, node), *changed]


def _statement(w: Writer, node: Node) -> Node:
    match node:
        case gast.Assign(targets=[target]) if late_keys.is_late(w, target):
            return late_keys.assigned(w, node, target, w.value(node.value))
        case gast.Assign():
            unpacked = [isinstance(target, gast.Tuple | gast.List) for target in node.targets]
            if any(unpacked) and not all(unpacked):
                w.refuse_box(node.value)
            sliced = any(isinstance(t, gast.Subscript) and isinstance(t.slice, gast.Slice) for t in node.targets)
            value = w.read(node.value) if any(unpacked) or sliced else w.value(node.value)
            return with_fields(
                node, targets=[written_target(w, one, unpacks=True) for one in node.targets], value=value
            )
        case gast.AnnAssign() if node.value is not None:
            return with_fields(node, target=written_target(w, node.target), value=w.value(node.value))
        case gast.AugAssign() if late_keys.is_late(w, node.target) and not w.is_boxed(node.target):
            return late_keys.augmented(w, node)
        case gast.AugAssign():
            if w.is_boxed(node.target):
                target = with_fields(w.held(node.target, _place(w, node.target)), ctx=gast.Store())
            else:
                target = written_target(w, node.target)
            return with_fields(node, target=target, value=w.read(node.value))
        case gast.For():
            return _for(w, node)
        case gast.While() | gast.If():
            body, orelse = (statements(w, part) for part in (node.body, node.orelse))
            return with_fields(node, test=w.test(node.test), body=body, orelse=orelse)
        case gast.Assert():
            return with_fields(node, test=w.test(node.test))
        case gast.Return() | gast.Expr() if node.value is not None:
            new = with_fields(node, value=w.value(node.value))
            chosen = isinstance(node, gast.Expr) and isinstance(new.value, gast.IfExp)
            return _kept(w, new) if chosen and not isinstance(node.value, gast.IfExp) else new
        case gast.FunctionDef():
            return w.function(node)
        case gast.Delete():
            return with_fields(node, targets=[written_target(w, one) for one in node.targets])
        case gast.Raise(exc=gast.Call(args=args, keywords=named) as exc) if node.cause is None:
            if any(map(w.is_boxed, [exc, *args, *(one.value for one in named)])):
                raise CannotBox(node)
            named = [with_fields(one, value=w.value(one.value)) for one in named]
            return with_fields(node, exc=with_fields(exc, args=[w.value(one) for one in args], keywords=named))
        case gast.Try():
            parts = {name: statements(w, getattr(node, name)) for name in ("body", "orelse", "finalbody")}
            handlers = [with_fields(one, body=statements(w, one.body)) for one in node.handlers]
            return with_fields(node, handlers=handlers, **parts)
    if w.mentions(node):
        raise CannotBox(node)
    return node


def _kept(w: Writer, node: Node) -> Node:
    """An expression that is a statement, and has become a choice, as one whose value has a name."""
    target = target_of(w.new_name("kept"), node)
    return gast.copy_location(gast.Assign(targets=[target], value=node.value, type_comment=None), node)


def _refuse_another(w: Writer, node: Node) -> None:
    """Raise CannotBox for a loop over what is in a box by a name that its body gives another one."""
    parts = list(gast.walk(node.iter))
    read = {part.id for part in parts if isinstance(part, gast.Name)}
    inside = [part for each in (node.target, *node.body) for part in gast.walk(each)]
    stored = {part.id for part in inside if isinstance(part, gast.Name) and isinstance(part.ctx, gast.Store)}
    if any(map(w.is_boxed, parts)) and read & stored:
        raise CannotBox(node)


def _for(w: Writer, node: Node) -> Node:
    _refuse_another(w, node)
    body, orelse = (statements(w, part) for part in (node.body, node.orelse))
    source = w.read(node.iter)
    if not w.is_boxed(node.target) or not isinstance(node.target, gast.Tuple | gast.List):
        return with_fields(node, target=written_target(w, node.target), iter=source, body=body, orelse=orelse)
    name, at = w.new_name("element"), node.target  # it is a box, which is unpacked
    held, parts = w.held(at, load(name, at)), written_target(w, at, unpacks=True)
    unpacked = gast.copy_location(gast.Assign(targets=[parts], value=held, type_comment=None), at)
    return with_fields(node, target=target_of(name, at), iter=source, body=[unpacked, *body], orelse=orelse)


def _with_name(w: Writer, node: Node) -> list[Node]:
    match node:
        case gast.Expr(value=gast.Call(func=gast.Attribute() as place)):
            method = True
        case gast.Assign(value=gast.Call(func=gast.Attribute() as place)) if not is_supported(
            node.value, item_to_store
        ):
            method = True
        case gast.AugAssign(target=place) | gast.Assign(targets=[place]) | gast.Delete(targets=[place]):
            method = False
        case _:
            return [node]
    root, path = place, list[Node]()
    while isinstance(root, gast.Attribute | gast.Subscript):
        path.append(root)
        root = root.value
    named = gast.Call in map(type, path) or any(isinstance(one, gast.Attribute) for one in path[1:])
    named = named or isinstance(root, gast.IfExp) or is_supported(root, item_there)
    if not isinstance(root, gast.IfExp | gast.Call) or not path or not named:
        return [node]
    first = list[Node]()
    if isinstance(node, gast.Assign) and not method and not is_simple(node.value):  # it is evaluated before the target
        value = w.new_name("value")
        first = [gast.Assign(targets=[target_of(value, node)], value=node.value, type_comment=None)]
        node = with_fields(node, value=load(value, node))
    name = w.new_name("held")
    new = load(name, root)
    for part in reversed(path):
        new = with_fields(part, value=new)
    given = gast.Assign(targets=[target_of(name, root)], value=root, type_comment=None)
    if method:
        changed = with_fields(node, value=with_fields(node.value, func=new))
    else:
        changed = with_fields(node, **({"target": new} if isinstance(node, gast.AugAssign) else {"targets": [new]}))
    return [*(gast.copy_location(one, node) for one in first), gast.copy_location(given, node), changed]


def _place(w: Writer, target: Node) -> Node:
    """The expression that reads what a target of `x += ...` assigns."""
    match target:
        case gast.Subscript():
            return w.subscript(read_of(target), target)
        case gast.Attribute():
            return with_fields(read_of(target), value=w.value(target.value))
    return read_of(target)


def written_target(w: Writer, node: Node, *, unpacks: bool = False) -> Node:
    """Write what an assignment assigns to; with `unpacks` it is given what is in a box."""
    match node:
        case gast.Subscript():
            late_keys.refuse(w, node)
            return w.subscript(node, node)
        case gast.Tuple() | gast.List():
            if not unpacks:
                w.refuse_box(node)
            return with_fields(node, elts=[written_target(w, one) for one in node.elts])
        case gast.Starred():
            w.refuse_box(node.value)
            return with_fields(node, value=written_target(w, node.value))
        case gast.Attribute():
            w.refuse_box(node.value)
            return with_fields(node, value=w.value(node.value))
    return node
