"""Arguments of a program in which objects are boxed: the entry begins by making the boxes."""

from __future__ import annotations

import gast

from pcbatch.data.objects.boxes.arguments import with_boxes
from pcbatch.data.objects.tuples.classes import name_of_class
from pcbatch.frontend.source.rewrites.boxes.box_facts import CannotBox
from pcbatch.frontend.source.rewrites.boxes.objects import Object
from pcbatch.frontend.source.rewrites.boxes.program import Body
from pcbatch.frontend.source.rewrites.boxes.writer import Writer
from pcbatch.frontend.source.scope import parameters
from pcbatch.frontend.source.tree import Node, constant, display, load, supported, target_of, with_fields


def with_boxed_arguments(w: Writer, entry: Body, written: Node) -> Node:
    """Return the tree of the entry, which makes boxes of what its arguments hold."""
    names = [name for name in parameters(entry.tree.args) if w.holds(entry.scope.variables[name])]
    if not names:
        return written
    if isinstance(written, gast.Lambda):
        raise CannotBox(written)
    at, made = written.body[0], list[Node]()
    for name in names:
        value = supported(with_boxes, [load(name, at), _pattern(w, entry.scope.variables[name], at, ())], at)
        assignment = gast.Assign(targets=[target_of(name, at)], value=value, type_comment=None)
        made.append(gast.copy_location(assignment, at))
    return with_fields(written, body=[*made, *written.body])


def _pattern(w: Writer, value: Object, at: Node, around: tuple[Object, ...]) -> Node:
    """The class of the box that a value becomes, or None, and the pattern of its elements, or None."""
    value = value.found()
    if value in around or value.classes or w.holds(value.key()):
        raise CannotBox(at)
    inner = constant(None, at)
    if w.holds(value, itself=False):
        if value.keys_known():
            raise CannotBox(at)
        inner = _pattern(w, value.elements(), at, (*around, value))
    cls = w.classes.get(value)
    return display([constant(None, at) if cls is None else load(name_of_class(cls), at), inner], at)
