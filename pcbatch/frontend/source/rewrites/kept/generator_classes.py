"""Classes whose objects stand for generators that are kept: `__next__` goes on where the last `yield` stood.

    def lcg(seed):                    class lcg:
        state = seed                      def __init__(me, seed):
        while True:                           me.at, me.state = 0, seed
            state = state * 5 % 7         def __next__(me):
            yield state                       me.state = me.state * 5 % 7
                                              return me.state

So generators are shared, stored and passed on as objects of the user's are. Variables that are read behind a `yield`
are attributes: assignments at the beginning that may as well run at once set them when the object is made, others are
None until they are assigned. The trees of the methods stand at the lines of the generator.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from weakref import WeakKeyDictionary

import gast

from pcbatch.data.functions import sequence_builtins
from pcbatch.data.sequences.lane_iterator import GENERATOR
from pcbatch.errors import Refusal
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.captured import assigned_once
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.generators import may_stop
from pcbatch.frontend.source.helpers import Helpers
from pcbatch.frontend.source.locate import WRITTEN, Located
from pcbatch.frontend.source.make_unit import make_unit
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.rewrites.kept.assigned_variables import read_without_value
from pcbatch.frontend.source.rewrites.kept.counted_elements import CannotResume, Counted, statements
from pcbatch.frontend.source.rewrites.kept.resumed_bodies import OWN, Resumed
from pcbatch.frontend.source.rewrites.nested import lift, nonlocals
from pcbatch.frontend.source.same_code import compile_inner
from pcbatch.frontend.source.scope import bindings, free_names, parameters, renamed
from pcbatch.frontend.source.tree import (
    Node,
    attribute,
    constant,
    is_supported,
    load,
    rebuild,
    supported,
    with_fields,
)
from pcbatch.ir.names import ITSELF, unused

_classes: WeakKeyDictionary[FunctionType, dict[str, type]] = WeakKeyDictionary()
MATH = (gast.Add, gast.Sub, gast.Mult, gast.BitAnd, gast.BitOr, gast.BitXor, gast.Mod, gast.FloorDiv)
EMPTY = (list, dict, set)
SUPPORTED = (sequence_builtins.counted_sequence, sequence_builtins.settled)


def class_of_generator(target: Target, helpers: Helpers) -> type:
    """Return the class of a generator function; raises CannotResume if there is none.

    What one that is defined in another function reads of that is a keyword of the class.
    """
    outer = None if target.nested is None else target.nested.outer
    if outer is None:
        known = _classes.setdefault(target.fn, {})
        if "" not in known:
            known[""] = _Writer(make_unit(target.fn, helpers, {})).made()
        return known[""]
    if ITSELF in outer.lifted:
        raise CannotResume("it is defined in a function that is defined in another one", target.nested.node)
    known, name = _classes.setdefault(outer.fn, {}), target.nested.name
    if name not in known:
        outer = make_unit(outer.fn, helpers, {})
        written = lift(outer, frozenset({name}), outer.definitions)[name]
        _check_captured(outer, written)
        known[name] = _Writer(make_unit(written.fn, helpers, {}, written)).made()
    return known[name]


def _check_captured(outer: Unit, target: Target) -> None:
    """Refuse what a nested generator reads of the function around it and what may be another object later."""
    node = target.nested.node
    for name in free_names(node):
        if name in outer.definitions:
            raise CannotResume(f"it reads `{name}`, which is a function inside another one", node)
    for name, _ in target.captured:
        if not assigned_once(outer, name):
            raise CannotResume(f"it reads `{name}`, which the function around it may assign again", node)


class _Writer:
    """Writes the class of one generator function."""

    def __init__(self, unit: Unit) -> None:
        self.unit, self.node = unit, unit.node
        self.own = {name: load(unused(name, "_", unit.names), self.node) for name in OWN}
        self.at = unused("at", "_", unit.names)
        self.params = tuple(unit.params)

    def made(self) -> type:
        self.check()
        first, rest = self.beginning()
        known = {*self.params, *(name for name, _ in bindings(first))}
        fields = [name for name in read_without_value(rest, set(), resumes=True) if name in self.unit.bound]
        unset = read_without_value(rest, known, resumes=False)
        for name, node in bindings(rest):
            self.check_field(name, node, rest) if name in fields else None
        for name in fields:
            if name in unset:
                raise CannotResume(f"`{name}` is read behind a `yield`, and may have no value there", unset[name])
        later = {name for name, _ in bindings(rest)}
        stops = may_stop(self.unit, rest)
        counted = Counted(self.unit, self.own, frozenset(fields) - later)
        writer = Resumed(self.unit, self.own, self.at, stops, counted)
        code = self.as_attributes(writer.body(rest), fields)
        values = {name: load(name, self.node) if name in known else None for name in fields}
        values |= dict.fromkeys(counted.counts, constant(0, self.node)) | dict.fromkeys(counted.parts)
        begin = [line for name, value in values.items() for line in self.stored(name, value)]
        begin += self.stored(self.at, constant(0, self.node))
        me, fn = self.own["me"].id, self.unit.fn
        methods = {
            "__init__": self.method("__init__", self.all_parameters(), [*first, *begin]),
            "__iter__": self.method("__iter__", no_more(self.node), statements(f"return {me}", self.node)),
            "__next__": self.method("__next__", no_more(self.node), code),
        }
        methods["__init__"].__defaults__, methods["__init__"].__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
        names = {"__module__": fn.__module__, "__qualname__": fn.__qualname__, GENERATOR: True}
        names |= dict.fromkeys(("send", "throw", "close"), _sent)
        return type(fn.__name__, (), {**names, **methods})

    def check(self) -> None:
        """Refuse what the methods of an object would not do as the generator does."""
        if nonlocals(self.node) or any(isinstance(part, gast.Global) for part in gast.walk(self.node)):
            raise CannotResume("it assigns variables of the scope around it", self.node)
        if self.unit.in_class and any(_is_private(part) for part in gast.walk(self.node)):
            raise CannotResume("it reads private names of its class", self.node)

    def check_field(self, name: str, node: Node, rest: list[Node]) -> None:
        """Refuse a variable that is read behind a `yield` where no attribute can take its place."""
        parts = (part for one in rest for part in gast.walk(one) if isinstance(part, gast.NamedExpr))
        bound = not isinstance(node, gast.Name) or name in self.unit.definitions or isinstance(node.ctx, gast.Del)
        if bound or any(part.target is node for part in parts):
            raise CannotResume(f"`{name}` is bound here and read behind a `yield`", node)

    def beginning(self) -> tuple[list[Node], list[Node]]:
        """The assignments at the beginning that may run when the generator is made, and the other statements."""
        first, known = list[Node](), set(self.params)
        for k, node in enumerate(self.node.body):
            match node:
                case gast.Expr(value=gast.Constant(value=str())):
                    continue
                case gast.Assign(targets=[target]) if (
                    isinstance(target, gast.Name) or _alike(target, node.value)
                ) and (value := self.settled(node.value, known)) is not None:
                    first.append(with_fields(node, value=value))
                    known |= {name for name, _ in bindings([node])}
                    continue
            return first, self.node.body[k:]
        return first, []

    def settled(self, node: Node, known: set[str]) -> Node | None:
        """An expression that gives the same at once, and does nothing else: None if that is not known."""
        match node:
            case gast.Constant():
                return node
            case gast.Name(id=name) if name in known or self.is_global_number(node):
                return node
            case gast.UnaryOp(op=gast.USub(), operand=gast.Constant()):
                return node
            case gast.BinOp(op=op, left=left, right=gast.Constant(value=int(number))) if number and type(op) in MATH:
                value = self.settled(left, known)
                value = supported(sequence_builtins.settled, [value], left) if isinstance(value, gast.Name) else value
                return None if value is None else with_fields(node, left=value)
            case gast.Tuple(elts=elts) | gast.List(elts=elts):
                values = [self.settled(one, known) for one in elts]
                return None if None in values else with_fields(node, elts=values)
            case gast.Dict(keys=[]):
                return node
            case gast.Call(func=func, args=[], keywords=[]) if any(resolve(self.unit, func) is one for one in EMPTY):
                return node
        return None

    def is_global_number(self, node: Node) -> bool:
        value = MISSING if node.id in self.unit.bound else resolve(self.unit, node)
        return type(value) in (int, float, bool, str)

    def stored(self, name: str, value: Node | None) -> list[Node]:
        value = constant(None, self.node) if value is None else value
        return statements(f"me.{name} = value", self.node, **self.own, value=value)

    def all_parameters(self) -> Node:
        """The parameters of the generator, and those for what it reads of a function around it."""
        args = self.node.args
        more = [name for name in self.params if name not in parameters(args)]
        names = [with_fields(load(name, self.node), ctx=gast.Param()) for name in more]
        kwonly = [*args.kwonlyargs, *names]
        return with_fields(args, kwonlyargs=kwonly, kw_defaults=[*args.kw_defaults, *(None for _ in more)])

    def as_attributes(self, nodes: list[Node], fields: Iterable[str]) -> list[Node]:
        """Statements in which variables are attributes."""
        spaced = {name: f"{name} " for name in fields}
        names = {new: name for name, new in spaced.items()}

        def change(node: Node) -> Node:
            if isinstance(node, gast.Name) and node.id in names:
                return with_fields(attribute(self.own["me"], names[node.id], node), ctx=node.ctx)
            new = rebuild(node, change)
            if isinstance(new, gast.AnnAssign) and isinstance(new.target, gast.Attribute):
                assigned = gast.Assign(targets=[new.target], value=new.value, type_comment=None)
                return gast.copy_location(gast.Pass() if new.value is None else assigned, new)
            return new

        return [change(renamed(node, spaced)) for node in nodes]

    def method(self, name: str, args: Node, body: list[Node]) -> FunctionType:
        """Make a method of the class."""
        me = with_fields(self.own["me"], ctx=gast.Param())
        first = {"posonlyargs": [me, *args.posonlyargs]} if args.posonlyargs else {"args": [me, *args.args]}
        plain = with_fields(args, **first)
        node = with_fields(self.node, name=name, args=plain, body=body, decorator_list=[], returns=None)
        fn = compile_inner(self.unit.fn, gast.gast_to_ast(_without_support(node)), name, {})
        if fn is None:
            raise CannotResume("it needs its class, as `super()` does", self.node)
        code = fn.__code__.replace(co_name=name, co_qualname=f"{self.unit.fn.__qualname__}.{name}")
        method = FunctionType(code, fn.__globals__, name, None, fn.__closure__)
        setattr(method, WRITTEN, Located(self.unit.source, node, self.unit.in_class))
        return method


def _sent(*args: object) -> None:
    help = "pass what it needs as an argument, or keep it in an object"
    raise Refusal("PCB105", "nothing is sent into a generator of a lane", helps=(help,))


def _alike(target: Node, value: Node) -> bool:
    """Whether a display of names gets a display of as many values."""
    both = isinstance(target, gast.Tuple) and isinstance(value, gast.Tuple)
    return both and len(target.elts) == len(value.elts) and all(isinstance(one, gast.Name) for one in target.elts)


def no_more(node: Node) -> Node:
    """The parameters of a method without arguments."""
    empty: dict[str, list[Node]] = {"posonlyargs": [], "args": [], "kwonlyargs": [], "defaults": [], "kw_defaults": []}
    return with_fields(node.args, **empty, vararg=None, kwarg=None)


def _without_support(node: Node) -> Node:
    """The tree as Python runs it."""
    if any(is_supported(node, function) for function in SUPPORTED):
        return _without_support(node.args[0])
    return rebuild(node, _without_support)


def _is_private(node: Node) -> bool:
    name = getattr(node, "attr", getattr(node, "id", ""))
    return isinstance(name, str) and name.startswith("__") and not name.endswith("__")
