"""Functions that a lane chooses are numbers, and calls of them are choices among calls.

    OPS[c](x, y)            ==>     add(x, y) if n == 1 else mul(x, y)       with n = {"+": 1, "*": 2}[c]
    f = OPS.get(c)          ==>     f = {"+": 1, "*": 2}.get(c)
    f = add if c else mul   ==>     f = 1 if c else 2

A variable becomes one of numbers where all that is assigned to it is chosen so, and all uses of it are calls,
conditions and comparisons with None. So does a table made in the function, where all that is taken from it is so.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FunctionType

import gast

from pcbatch.data import optional
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.own_classes import stores
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.rewrites.attribute_tables import is_of_owner, table_of
from pcbatch.frontend.source.rewrites.method_lookup import owner_of
from pcbatch.frontend.source.tree import (
    FUNCTIONS,
    SCOPES,
    Node,
    attribute,
    call,
    compare,
    constant,
    display,
    is_none,
    load,
    rebuild,
    subscript,
    supported,
    target_of,
    with_fields,
)

MOST = 64  # functions of a table
ASSIGNS = (gast.Assign, gast.AnnAssign)


def write_out_choices(unit: Unit) -> Node:
    """Return the tree of a function with calls of chosen functions written out; the tree itself if there are none."""
    writer = _Writer(unit)
    node: Node = writer.rewritten(unit.node)
    if not writer.lambdas:
        return node
    return with_fields(node, body=[*writer.lambdas, *node.body])


class _Choices:
    """Finds out which variables, tables and expressions are functions that a lane chooses.

    Attributes:
        chosen: variables that hold chosen functions.
        tables: variables that hold tables of functions.
        rebinds: whether a call may assign a variable of this function.
    """

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.parents = {id(child): node for node in gast.walk(unit.node) for child in gast.iter_child_nodes(node)}
        self.reads: dict[str, list[Node]] = {}
        self.written: dict[str, int] = {}  # by name, in any scope: how often it is bound
        self.rebinds = False
        values: dict[str, list[Node]] = {}
        for node in gast.walk(unit.node):
            if isinstance(node, gast.Name) and isinstance(node.ctx, gast.Load):
                self.reads.setdefault(node.id, []).append(node)
            elif isinstance(node, gast.Name) and self.parents[id(node)] is not unit.node.args:
                self.written[node.id] = self.written.get(node.id, 0) + 1
            elif isinstance(node, gast.Global | gast.Nonlocal):
                self.rebinds = True
                self.written.update(dict.fromkeys(node.names, MOST))
            elif isinstance(node, ASSIGNS) and (name := _assigned(node)):
                values.setdefault(name, []).append(node.value)
        self.values = {n: v for n, v in values.items() if len(v) == self.written[n] == len(unit.bound.get(n, ()))}
        called = {n for n, reads in self.reads.items() if any(self.is_called(read) for read in reads)}
        self.chosen = {n for n, v in self.values.items() if n in called and (len(v) > 1 or not self.is_function(v[0]))}
        self.tables: set[str] = set()
        self.tables = {n for n, v in self.values.items() if len(v) == 1 and self.elements(v[0])}
        while True:
            chosen = {n for n in self.chosen if all(map(self._is_use, self.reads.get(n, ())))}
            self.chosen = {n for n in chosen if all(self.taken(v) is not None for v in self.values[n])}
            tables = {n for n in self.tables if all(map(self._is_look_up, self.reads.get(n, ())))}
            if (chosen, tables) == (self.chosen, self.tables):
                return
            self.tables = tables

    @property
    def numbered(self) -> set[str]:
        """The variables that become numbers, or tables of them."""
        return self.chosen | self.tables

    def is_function(self, node: Node) -> bool:
        """Whether an expression means one function, whenever it is evaluated."""
        match node:
            case gast.Lambda():
                return not node.args.defaults and not node.args.kw_defaults
            case gast.Name(id=name) if name in self.unit.definitions:  # and no other scope has another meaning for it
                return self.written.get(name, 0) == isinstance(self.unit.definitions[name], gast.Assign)
            case gast.Name(id=name) if name in self.written:
                return False
            case gast.Attribute(value=gast.Name(id=name), attr=attr) if (name,) == self.unit.params[:1]:
                cls = owner_of(self.unit.fn)
                return name not in self.written and isinstance(inspect.getattr_static(cls, attr, None), FunctionType)
        return callable(resolve(self.unit, node)) and resolve(self.unit, node) is not MISSING

    def elements(self, node: Node) -> list[tuple[Node, Node]] | None:
        """The keys and functions of a table; None for what is none."""
        if isinstance(node, gast.Name) and node.id in self.tables:
            return self.elements(self.values[node.id][0])
        node = self.of_class(node)
        known = resolve(self.unit, node)
        match node, known:
            case gast.Dict(keys=keys, values=values), _:
                found = list(zip(keys, values, strict=True))
            case ((gast.List(elts=values) | gast.Tuple(elts=values)), _):
                found = [(constant(k, node), value) for k, value in enumerate(values)]
            case _, dict() | list() | tuple():
                items = known.items() if isinstance(known, dict) else enumerate(known)
                keys = [constant(key, node) for key, _ in items if type(key) in (int, str, bool)]
                found = [(key, subscript(node, key, node)) for key in keys] if len(keys) == len(known) else []
            case _:
                return None
        fine = 0 < len(found) <= MOST and all(key is not None and self.is_function(value) for key, value in found)
        return found if fine else None

    def of_class(self, node: Node) -> Node:
        """The table of a class for that of its object, `Machine.OPS` for `self.OPS`; other expressions as they are."""
        unit, owner = self.unit, owner_of(self.unit.fn)
        if (table := table_of(unit, node)) is not None:
            return table
        match node:
            case gast.Attribute(value=gast.Name(id=name), attr=attr) if (
                owner is not None and (name,) == unit.params[:1]
            ):
                family = {key: cls for key, cls in unit.classes.items() if issubclass(cls, owner)}
                tables = [inspect.getattr_static(cls, attr, None) for cls in family.values()]
                same = all(table is tables[0] and isinstance(table, dict | list | tuple) for table in tables)
                key = next((key for key, cls in family.items() if cls is owner), None)
                if key and same and name not in self.written and not stores(unit.fn, unit.classes.values(), attr):
                    return attribute(load(key, node), attr, node)
        return node

    def taken(self, node: Node) -> list[Node] | None:
        """The functions that an expression chooses from, None (the literal) among them; None if it is no choice."""
        match node:
            case gast.Subscript(value=table, slice=index) if not isinstance(index, gast.Slice):
                if resolve(self.unit, node) is not MISSING:
                    return [node] if self.is_function(node) else None
                elements = self.elements(table)
                return None if elements is None else [value for _, value in elements]
            case gast.Call(func=gast.Attribute(value=table, attr="get"), args=[_, *default], keywords=[]):
                elements, last = self.elements(table), self.taken(default[0]) if default else [constant(None, node)]
                if elements is None or last is None or len(default) > 1 or isinstance(table, gast.List | gast.Tuple):
                    return None
                return [*(value for _, value in elements), *last]
            case gast.IfExp(body=body, orelse=orelse):
                one, other = self.taken(body), self.taken(orelse)
                return None if one is None or other is None else [*one, *other]
            case gast.Name(id=name) if name in self.chosen:
                return [part for value in self.values[name] for part in self.taken(value) or ()] or None
        return [node] if is_none(node) or self.is_function(node) else None

    def _is_use(self, node: Node) -> bool:
        """Whether a variable is called, asked for its truth, or compared with None."""
        match self.parents[id(node)]:
            case gast.Compare(left=left, comparators=[right]):
                return left is node and is_none(right)
            case gast.UnaryOp(op=gast.Not()):
                return True
            case gast.If(test=test) | gast.While(test=test) | gast.IfExp(test=test):
                return test is node
        return self._is_consumed(node)

    def is_called(self, node: Node) -> bool:
        """Whether an expression is what a call calls, outside of lambdas, which assign nothing."""
        parent = self.parents[id(node)]
        called = isinstance(parent, gast.Call) and parent.func is node
        return called and not isinstance(self.around(node), gast.Lambda)

    def _is_consumed(self, node: Node) -> bool:
        """Whether what an expression chooses is called, or becomes a variable that is."""
        parent = self.parents[id(node)]
        match parent:
            case gast.Assign() | gast.AnnAssign():
                return _assigned(parent) in self.chosen
            case gast.IfExp(test=test) if test is not node:
                return self._is_consumed(parent)
        return self.is_called(node)

    def _is_look_up(self, node: Node) -> bool:
        """Whether a table is asked for a function that is called, or for its keys."""
        match self.parents[id(node)]:
            case gast.Subscript(value=value, slice=index, ctx=gast.Load()) as part if value is node:
                return not isinstance(index, gast.Slice) and self._is_consumed(part)
            case gast.Attribute(attr="get") as part:
                return self.taken(self.parents[id(part)]) is not None and self._is_consumed(self.parents[id(part)])
            case gast.Attribute(attr="keys"):
                return True
            case gast.Compare(ops=[gast.In() | gast.NotIn()], comparators=[right]):
                return right is node and isinstance(self.values[node.id][0], gast.Dict)
            case gast.Call(func=gast.Name(id="len")):
                return True
        return False

    def around(self, node: Node) -> Node:
        """The innermost scope around an expression."""
        while (node := self.parents[id(node)]) is not self.unit.node and not isinstance(node, SCOPES):
            pass
        return node


class _Writer:
    """Writes numbers in place of chosen functions, and choices among calls in place of their calls."""

    def __init__(self, unit: Unit) -> None:
        self.unit, self.choices = unit, _Choices(unit)
        self.temps = 0
        self.functions: dict[str, tuple[int, Node]] = {}  # by their text: number and expression
        self.lambdas: list[Node] = []  # their definitions

    def number(self, function: Node) -> Node:
        """The number of a function, which is true as the function is."""
        known = self.functions.setdefault(gast.dump(function), (len(self.functions) + 1, function))
        return constant(known[0], function)

    def callee(self, function: Node) -> Node:
        """The callee for a function: a lambda of this function has a name, as it may need control flow."""
        if not isinstance(function, gast.Lambda) or not isinstance(self.choices.around(function), FUNCTIONS):
            return function
        name = f"chosen_{function.lineno}_{function.col_offset}"
        if all(known.targets[0].id != name for known in self.lambdas):
            made = gast.Assign(targets=[target_of(name, function)], value=self.rewritten(function))
            self.lambdas.append(gast.copy_location(made, function))
        return load(name, function)

    def numbers(self, node: Node) -> Node:
        """The expression of a number in place of one of a function, or the table of numbers in place of a table."""
        if isinstance(node, gast.Name) and node.id in self.choices.numbered:
            return node
        if isinstance(node, gast.IfExp):
            test, body, orelse = self.rewritten(node.test), self.numbers(node.body), self.numbers(node.orelse)
            return with_fields(node, test=test, body=body, orelse=orelse)
        if self.choices.is_function(node):
            return self.number(node)
        match node:
            case gast.Subscript(value=table, slice=index):
                return subscript(self.numbers(table), self.rewritten(index), node)
            case gast.Call(func=gast.Attribute(value=table), args=[key, *default]):
                get = attribute(self.numbers(table), "get", node)
                return call(get, [self.rewritten(key), *map(self.numbers, default)], node)
        if is_none(node):
            return node
        elements = self.choices.elements(node) or []
        keys, values = [key for key, _ in elements], [self.number(value) for _, value in elements]
        table = self.choices.of_class(node)
        is_dict = isinstance(table, gast.Dict) or isinstance(resolve(self.unit, table), dict)
        made = gast.Dict(keys=keys, values=values) if is_dict else gast.Tuple(elts=values, ctx=gast.Load())
        return gast.copy_location(made, node)

    def rewritten(self, node: Node) -> Node:
        """Rewrite a node, and what is in it."""
        match node:
            case gast.Assign() | gast.AnnAssign() if (name := _assigned(node)) in self.choices.numbered:
                made = gast.Assign(targets=[target_of(name, node)], value=self.numbers(node.value))
                return gast.copy_location(made, node)
            case gast.Expr(value=gast.Call(func=func) as value) if self._is_choice(func):
                first, out = self.called(value, True)
                return gast.copy_location(gast.If(test=constant(True, node), body=[*first, out], orelse=[]), node)
            case gast.Call(func=gast.IfExp() as func) if self._is_choice(func) and self._is_of_functions(func):
                return self.call_of_either(func, node)
            case gast.Call(func=func) if self._is_choice(func):
                first, out = self.called(node, False)
                return subscript(display([*first, out], node), constant(len(first), node), node) if first else out
        return rebuild(node, self.rewritten)

    def call_of_either(self, func: Node, node: Node) -> Node:
        """The choice `A(x) if p else B(x)` for the call `(A if p else B)(x)`: both evaluate the same in one order."""
        if isinstance(func, gast.IfExp):
            body, orelse = (self.call_of_either(one, node) for one in (func.body, func.orelse))
            return with_fields(func, test=self.rewritten(func.test), body=body, orelse=orelse)
        args = list(map(self.rewritten, node.args))
        keywords = [gast.keyword(arg=k.arg, value=self.rewritten(k.value)) for k in node.keywords]
        return with_fields(node, func=self.callee(func), args=args, keywords=keywords)

    def _is_of_functions(self, func: Node) -> bool:
        """Whether an expression chooses by conditions alone."""
        if isinstance(func, gast.IfExp):
            return self._is_of_functions(func.body) and self._is_of_functions(func.orelse)
        return self.choices.is_function(func)

    def _is_choice(self, func: Node) -> bool:
        return self.choices.is_called(func) and not self.choices.is_function(func) and bool(self.choices.taken(func))

    def called(self, node: Node, statement: bool) -> tuple[list[Node], Node]:
        """The parts evaluated before a call of a chosen function, and the choice among the calls."""
        first: list[Node] = []

        def held(value: Node) -> Node:
            if isinstance(value, gast.Constant | gast.Lambda) or (isinstance(value, gast.Name) and not rebound):
                return value
            if isinstance(value, gast.Starred):
                return gast.copy_location(gast.Starred(value=held(value.value), ctx=gast.Load()), value)
            self.temps += 1
            temp = target_of(f"chosen_{self.temps}_{node.lineno}_{node.col_offset}", value)
            kept = gast.Assign(targets=[temp], value=value) if statement else gast.NamedExpr(target=temp, value=value)
            first.append(gast.copy_location(kept, value))
            return load(temp.id, value)

        functions = self.choices.taken(node.func) or []
        rebound = self.choices.rebinds or any(isinstance(part, gast.NamedExpr) for part in gast.walk(node))
        number = held(self.numbers(node.func))
        args = [held(self.rewritten(arg)) for arg in node.args]
        keywords = [gast.keyword(arg=k.arg, value=held(self.rewritten(k.value))) for k in node.keywords]
        if any(map(is_none, functions)):
            number = held(supported(optional.unwrapped, [number], node))
        out: Node = None
        for function in reversed(list(self._distinct(functions))):
            own = [load(self.unit.params[0], node)] if is_of_owner(self.unit, function) else []
            made = gast.Call(func=self.callee(function), args=[*own, *args], keywords=keywords)
            made = gast.copy_location(made, node)
            made = gast.copy_location(gast.Expr(value=made), node) if statement else made
            test = compare(number, gast.Eq(), self.number(function), node)
            if out is None:
                out = made
            elif statement:
                out = gast.copy_location(gast.If(test=test, body=[made], orelse=[out]), node)
            else:
                out = gast.copy_location(gast.IfExp(test=test, body=made, orelse=out), node)
        return first, out

    def _distinct(self, functions: list[Node]) -> Iterator[Node]:
        yield from {gast.dump(function): function for function in functions if not is_none(function)}.values()


def _assigned(node: Node) -> str:
    """The variable of `name = value`, annotated or not; empty for another assignment."""
    targets = node.targets if isinstance(node, gast.Assign) else [node.target] if node.value is not None else []
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], gast.Name) else ""
