"""Cells of variables that change after a function which is a value has captured them.

    for i in range(n):                        c = closed(C, 0)
        later.append(lambda x: x + i)   ==>   for i in range(n):
                                                  c.value = i; later.append(lambda x: x + c.value)

A variable that such a function assigns by `nonlocal`, or whose list it changes in place, is replaced by its cell
everywhere. What is bound once, before the function is made, needs no cell: the function takes its value.
"""

from __future__ import annotations

import gast

from pcbatch.data.functions import drafts
from pcbatch.data.objects.function_values import cell_class, field_of
from pcbatch.frontend.source.captured import CELL, cell_of, changed, read_by_cell
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.rewrites.function_values import FunctionWriter
from pcbatch.frontend.source.rewrites.nested import function_of, nonlocals
from pcbatch.frontend.source.scope import bindings, parameters
from pcbatch.frontend.source.tree import (
    COMPREHENSIONS,
    Node,
    constant,
    load,
    rebuild_bodies,
    supported,
    target_of,
    with_fields,
)

LOOPS = (gast.For, gast.While, *COMPREHENSIONS)
VALUE = field_of(0)


def write_cells(unit: Unit) -> Node:
    """Return the tree of a function with cells of variables; the tree itself where none needs one."""
    if not unit.decisions.functions:
        return unit.node
    writer = FunctionWriter(unit, only_looks=True)
    writer.rewritten(unit.node)
    node = unit.node
    for name, at in dict(reversed(writer.captured)).items():
        variable = _Variable(unit, name, name in writer.changing)
        if (why := variable.changes(writer.captured)) is not None:
            node = variable.written(node, at, why)
    return node


class _Variable:
    """One variable that functions which are values capture; `changing`: they change its object in place."""

    def __init__(self, unit: Unit, name: str, changing: bool) -> None:
        self.unit, self.name, self.bound = unit, name, unit.bound[name]
        inner = [one for one in unit.definitions.values() if name in nonlocals(function_of(one))]
        self.shared = inner[0] if inner else unit.node if changing else None

    def changes(self, captured: list[tuple[str, Node]]) -> Node | None:
        """Return the place where a variable may change after a function has captured it; None if it does not."""
        if cell_of(self.name) in self.unit.bound or self.name.startswith(CELL):
            return None
        if self.name not in parameters(self.unit.node.args) and self.name in self.unit.params:
            return self._around()
        places = [at for name, at in captured if name == self.name]
        loops = [node for node in gast.walk(self.unit.node) if isinstance(node, LOOPS)]
        for binding in self.bound:
            for at in places:
                again = any(_holds(loop, binding) and _holds(loop, at) for loop in loops)
                if again or _start(binding) > _start(at):
                    return binding
        return self.shared

    def _around(self) -> Node | None:
        """Return the place where a variable of the function around this one changes."""
        here = self.unit.source.loc(self.unit.node)
        for unit in self.unit.helpers.units:
            for node in map(function_of, unit.definitions.values()):
                if unit.source.loc(node) == here:
                    bound = unit.bound.get(self.name, ())
                    loops = [node for node in gast.walk(unit.node) if isinstance(node, LOOPS)]
                    many = len(bound) + (self.name in unit.params) > 1
                    again = any(_holds(loop, binding) for loop in loops for binding in bound)
                    return bound[-1] if bound and (many or again) else None
        return self.unit.node

    def written(self, node: Node, at: Node, change: Node) -> Node:
        """The tree of the function with a cell of the variable."""
        if isinstance(node, gast.Lambda):
            raise changed(self.unit, self.name, at, change)
        own = self.name in parameters(self.unit.node.args)
        first = next((k for k, one in enumerate(node.body) if any(_holds(one, b) for b in self.bound)), None)
        if not own and (first is None or self.name in self.unit.params):
            raise changed(self.unit, self.name, at, change)
        begin = None if own or first is None else self._first_value(node.body[first])
        made = self._cell(load(self.name, at) if begin is None else begin, at)
        if self.shared is not None:
            if begin is not None:
                raise changed(self.unit, self.name, at, change)
            body = [read_by_cell(one, [self.name]) for one in node.body]
            if own or first is None:
                return with_fields(node, body=[made, *body])
            value = read_by_cell(node.body[first].value, [self.name])
            return with_fields(node, body=[*body[:first], self._cell(value, at), *body[first + 1 :]])
        node = rebuild_bodies(node, lambda body: self._stored(body, at, change), inner=False)
        if own or first is None:
            return with_fields(node, body=[made, *node.body])
        if begin is not None and not self._has_value(at):
            raise changed(self.unit, self.name, at, change)
        if begin is None:  # where the variable gets its first value, the cell gets it as well
            return with_fields(node, body=[*node.body[: first + 1], made, *node.body[first + 2 :]])
        return with_fields(node, body=[*node.body[:first], made, *node.body[first:]])

    def _first_value(self, statement: Node) -> Node | None:
        """Return the content of a cell whose variable has no value yet; None if the statement itself gives it one."""
        match statement:
            case gast.Assign(targets=[gast.Name(id=name)]) | gast.AnnAssign(target=gast.Name(id=name)):
                if name == self.name and statement.value is not None:
                    return None
            case gast.For(target=gast.Name(id=name), iter=gast.Call(func=gast.Name(id="range"))) if name == self.name:
                return constant(0, statement)
        return constant(None, statement)

    def _has_value(self, at: Node) -> bool:
        """Whether the variable has a value for certain where a function captures it: a loop around has assigned it."""
        for loop in gast.walk(self.unit.node):
            if isinstance(loop, gast.For | gast.While) and _holds(loop, at):
                before = [one for one in loop.body if isinstance(one, gast.Assign) and _start(one) < _start(at)]
                if self._binds([*before, *([loop.target] if isinstance(loop, gast.For) else [])]):
                    return True
        return False

    def _stored(self, body: list[Node], at: Node, change: Node) -> list[Node]:
        """Statements with a store into the cell after each that assigns the variable."""
        out: list[Node] = []
        for node in body:
            out.append(node)
            match node:
                case gast.Assign() | gast.AnnAssign() | gast.AugAssign():
                    out += [self._store(node)] if self._binds([node]) else []
                case gast.For() if self._binds([node.target]):
                    out[-1] = with_fields(node, body=[self._store(node.target), *node.body])
                case gast.If() | gast.While() | gast.For() | gast.Try() | gast.With():
                    inner = (gast.stmt, gast.ExceptHandler)
                    heads = [part for part in gast.iter_child_nodes(node) if not isinstance(part, inner)]
                    if self._binds(heads):
                        raise changed(self.unit, self.name, at, change)
                case _ if self._binds([node]):
                    raise changed(self.unit, self.name, at, change)
        return out

    def _binds(self, nodes: list[Node]) -> bool:
        return any(name == self.name for name, _ in bindings(nodes))

    def _store(self, at: Node) -> Node:
        target = gast.copy_location(gast.Attribute(load(cell_of(self.name), at), VALUE, gast.Store()), at)
        return gast.copy_location(gast.Assign(targets=[target], value=load(self.name, at)), at)

    def _cell(self, value: Node, at: Node) -> Node:
        helpers, code = self.unit.helpers, self.unit.fn.__code__
        place = (f"variable {self.name} of {self.unit.fn.__module__} {code.co_firstlineno}", code.co_filename)
        classes = {cls.pcbatch_place: cls for cls in helpers.decisions.functions} | helpers.functions
        if place not in classes:
            helpers.functions[place] = cell_class(place, self.unit.fn.__module__)
        made = supported(drafts.closed, [load(place[0], at), value], at)
        return gast.copy_location(gast.Assign(targets=[target_of(cell_of(self.name), at)], value=made), at)


def _start(node: Node) -> tuple[int, int]:
    return (node.lineno, node.col_offset)


def _holds(node: Node, part: Node) -> bool:
    return any(one is part for one in gast.walk(node))
