"""The classes of functions that are values of a lane, made of the trees of the functions.

A class has the function as its method `__call__`, whose tree reads what the function has captured from the record
before anything else. Its lines are those of the user's function.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import gast

from pcbatch.data.functions import drafts
from pcbatch.data.object_parts import is_users
from pcbatch.data.objects.function_values import field_of, function_class
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.captured import CELL, cell_of, changed, changed_in_place, read_by_cell, require_known
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.locate import WRITTEN, Located
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.rewrites.nested import function_of, known_definitions, nonlocals, uses
from pcbatch.frontend.source.same_code import compile_inner
from pcbatch.frontend.source.scope import free_names, parameters
from pcbatch.frontend.source.tree import (
    Node,
    attribute,
    constant,
    is_constant,
    load,
    no_parameters,
    supported,
    target_of,
    with_fields,
)
from pcbatch.ir.analysis.dataflow import reachable

CALL = "__call__"
RECORD, KNOWN, OWNER, REST = "pcbatch_record", "pcbatch_known", "pcbatch_owner", "pcbatch_arguments"
PARAMETER = inspect.Parameter


def is_own(value: Any) -> bool:
    """Return whether a function or a class is the user's own."""
    return is_users(getattr(value, "__module__", None) or "")


@dataclass(frozen=True, slots=True)
class Head:
    """The parameters of a function that is a value.

    Attributes:
        args: their tree.
        handed_on: the arguments of a call that hands them on, and the keywords of it.
        defaults: the values of those that have one; None for those of `made`.
        made: the defaults that are evaluated where the function is made, by parameter.
    """

    args: Node
    handed_on: tuple[list[Node], list[Node]]
    defaults: Mapping[str, object] = field(default_factory=dict)
    made: Mapping[str, Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Captured:
    """The captures of a function that is a value: values by their names in it, and objects that are known.

    `told` are the operators that compare such functions by their records; `bound` is `FunctionValue.pcbatch_bound`.
    """

    values: Mapping[str, Node] = field(default_factory=dict)
    known: Mapping[str, object] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    bound: int | None = None


class Maker(ABC):
    """Makes the records of functions that are values in one function, and their classes.

    Attributes:
        hidden: the names of the comprehensions around an expression.
        captured: the variables that functions capture, each with the place where the function is made.
        changing: those whose lists, dicts and sets they change in place.
        only_looks: whether no class is made, and `found` is set where one would be.
    """

    def __init__(self, unit: Unit, only_looks: bool = False) -> None:
        self.unit, self.hidden = unit, frozenset[str]()
        self.only_looks, self.found = only_looks, False
        self.captured: list[tuple[str, Node]] = []
        self.changing: set[str] = set()

    @abstractmethod
    def value(self, node: Node) -> Node:
        """Return the expression of a part of a record."""

    def local(self, definition: Node, at: Node) -> Node | None:
        """The record of a function that is defined in this one, or around it; None if it cannot be a value."""
        return self._of(self.unit, definition, None, at)

    def passed(self, target: Target, at: Node) -> Node | None:
        """The record of a function of the program: one that this one has got as an argument, or one around it."""
        if target.nested is None:
            return None if target.args or target.keywords else self.known(target.fn, at)
        outer = target.nested.outer
        for name in (inner for inner, _ in target.captured if not inner.startswith(CELL)):
            if name in target.returned or len(outer.bound.get(name, ())) + (name in outer.params) > 1:
                raise changed(self.unit, name, at, None)
        return self._of(target.nested.outer, target.nested.node, dict(target.captured), at)

    def _of(self, outer: Unit, definition: Node, names: Mapping[str, str] | None, at: Node) -> Node | None:
        """The record of a function that is defined in `outer`, whose variables have other names here."""
        around = known_definitions(outer)
        node = function_of(definition)
        name = next((one for one, found in around.items() if function_of(found) is node), "<lambda>")
        around[name] = definition
        used = reachable([name], uses(around))
        nodes = {one: function_of(around[one]) for one in used}
        if any(getattr(one, "decorator_list", ()) or _generates(one) for one in nodes.values()):
            return None
        head = _head_of(node)
        reads = (n for one in nodes.values() for n in (*free_names(_without_defaults(one)), *sorted(nonlocals(one))))
        free = list(dict.fromkeys(reads))
        defined = [around[one] for one in sorted(used - {name})]
        body = _body(node)
        if name in free:  # it calls itself
            defined.append(definition)
            body = [_call_of(load(name, node), head, node)]
        free = [n for n in free if n not in used]
        known = {**{n: outer.imports[n] for n in free if n in outer.imports}, **outer.statics}
        # A class of functions, which calls that are written out name, is known everywhere.
        known = {n: known[n] for n in free if n in known and " " not in n and not isinstance(known[n], Target)}
        free = [n for n in free if n in outer.variables and n not in known]
        if names is None:
            self.captured += [(n, at) for n in free]
            self.changing |= {n for one in nodes.values() for n in changed_in_place(outer, one, free)}
            inside = [n for n in self.hidden if n in free_names(_without_defaults(node))]
            if inside:
                raise changed(self.unit, inside[0], at, None)
        celled = [n for n in free if cell_of(n) in outer.bound]
        parts = [read_by_cell(one, celled) for one in (*defined, *body)]
        values = {cell_of(n) if n in celled else n: n for n in free}
        require_known(outer, node, () if names is None else values, names or ())
        values = {n: load(n if names is None else names[n], at) for n in sorted(values)}
        told = ("is", "==") if values and isinstance(node, gast.Lambda) else ()  # made as often as in Python
        place = (_name(outer, name, node), outer.source.loc(node))
        return self._record(outer, node, head, parts, Captured(values, known, told), place, at)

    def known(self, value: Any, at: Node) -> Node | None:
        """The record of a function that exists before anything runs."""
        fn = value if isinstance(value, FunctionType) else None
        head = _head_like(fn, 0, at)
        place = (f"function {getattr(value, '__qualname__', 'object')} {id(value):x}", id(value))
        return self._record(
            self.unit,
            at,
            head,
            [_call_of(load(KNOWN, at), head, at)],
            Captured({}, {KNOWN: value}, ("is", "==")),
            place,
            at,
        )

    def method(self, methods: Sequence[FunctionType], owner: Node, at: Node) -> Node | None:
        """The record of a method of an object: which it is, the class of the object tells where it is called."""
        alike = len({inspect.signature(one) for one in methods}) == 1
        head = _head_like(methods[0] if alike else None, 1, at)
        body = [_call_of(attribute(load(OWNER, at), at.attr, at), head, at)]
        return self._record(
            self.unit, at, head, body, Captured({OWNER: owner}, told=("is",)), (f"method {at.attr}", at.attr), at
        )

    def partial(self, at: Node) -> Node | None:
        """The record of what `functools.partial` makes."""
        func, *args = at.args
        if any(isinstance(arg, gast.Starred) for arg in args) or any(k.arg is None for k in at.keywords):
            return None
        known = resolve(self.unit, func)
        values = {f"pcbatch_bound_{k}": value for k, value in enumerate([*args, *(k.value for k in at.keywords)])}
        fn = known if isinstance(known, FunctionType) and not at.keywords else None
        names, head = [load(name, at) for name in values], _head_like(fn, len(args), at)
        bound = [gast.keyword(arg=k.arg, value=v) for k, v in zip(at.keywords, names[len(args) :], strict=True)]
        body = [_call_of(load(KNOWN, at), head, at, names[: len(args)], bound)]
        unknown = Captured({**values, KNOWN: func}, bound=len(args))
        captured = unknown if known is MISSING else Captured(values, {KNOWN: known})
        return self._record(
            self.unit, at, head, body, captured, (_name(self.unit, "partial", at), self.unit.source.loc(at)), at
        )

    def _record(
        self,
        outer: Unit,
        node: Node,
        head: Head,
        body: list[Node],
        captured: Captured,
        place: tuple[object, ...],
        at: Node,
    ) -> Node | None:
        """The expression of a record, of the class of this place; the class is made where there is none yet."""
        self.found, helpers = True, self.unit.helpers
        if self.only_looks:
            for part in (*captured.values.values(), *head.made.values()):
                self.value(part)
            return constant(None, at)
        shape = (*captured.values, *(f"{id(value):x}" for value in captured.known.values()))
        shown, place = str(place[0]), (" ".join((str(place[0]), *shape)), *place[1:])
        classes = {cls.pcbatch_place: cls for cls in helpers.decisions.functions} | helpers.functions
        if place not in classes:
            there = Located(outer.source, node, outer.in_class)
            call = _method(outer.fn, there, head, body, captured, shown)
            if call is None:
                return None
            fields = {name: field_of(len(captured.values) + k) for k, name in enumerate(head.made)}
            count, told = len(captured.values) + len(fields), captured.told
            cls = function_class(place, call, count, fields, told, captured.bound)
            classes[place] = helpers.functions[place] = cls
            self.unit.want(call.__code__, at, "it is a value of the lane")
        values = [self.value(value) for value in (*captured.values.values(), *head.made.values())]
        return supported(drafts.closed, [load(str(place[0]), at), *values], at)


def method_class(unit: Unit, found: Located, init: FunctionType, function: Node) -> str | None:
    """Return the name of the class of a lambda in an `__init__` that captures nothing but the object, which it takes
    before its arguments; None if its code cannot be made."""
    loc = found.source.loc(function)
    place = (f"method <lambda> {loc.line}:{loc.col} of {init.__module__}", loc)
    helpers = unit.helpers
    if place not in {cls.pcbatch_place for cls in helpers.decisions.functions} | helpers.functions.keys():
        own, *_ = parameters(found.node.args)
        there = Located(found.source, function, found.in_class)
        call = _method(init, there, _head_of(function), _body(function), Captured(), str(place[0]), own)
        if call is None:
            return None
        helpers.functions[place] = function_class(place, call, None, {}, ())
        unit.want(call.__code__, function, "it is in a table of the object")
    return str(place[0])


def _method(
    outer: FunctionType, at: Located, head: Head, body: list[Node], captured: Captured, name: str, first: str = RECORD
) -> FunctionType | None:
    """The method of the class of a function; None if its code cannot be made."""
    node = at.node
    reads = [
        gast.copy_location(
            gast.Assign(targets=[target_of(name, node)], value=attribute(load(RECORD, node), field_of(k), node)), node
        )
        for k, name in enumerate(captured.values)
    ]
    record = gast.copy_location(gast.Name(first, gast.Param(), None, None), node)
    kind = "posonlyargs" if head.args.posonlyargs else "args"
    args = with_fields(head.args, **{kind: [record, *getattr(head.args, kind)]})
    tree = gast.FunctionDef(
        name=CALL, args=args, body=[*reads, *body], decorator_list=[], returns=None, type_comment=None, type_params=[]
    )
    tree = gast.copy_location(tree, node)
    fn = compile_inner(outer, gast.gast_to_ast(tree), CALL, captured.known)
    if fn is None:
        return None
    code = fn.__code__.replace(co_name=CALL, co_qualname=f"{outer.__qualname__}.{name}.{CALL}")
    made = FunctionType(code, fn.__globals__, CALL, None, fn.__closure__)
    named = [one.id for one in (*args.posonlyargs, *args.args)]
    made.__defaults__ = tuple(head.defaults[n] for n in named if n in head.defaults)
    made.__kwdefaults__ = {n: value for n, value in head.defaults.items() if n not in named}
    vars(made)[WRITTEN] = Located(at.source, tree, at.in_class)
    return made


def _name(unit: Unit, name: str, node: Node) -> str:
    loc = unit.source.loc(node)
    return f"function {name} {loc.line}:{loc.col} of {unit.fn.__module__}"


def _body(node: Node) -> list[Node]:
    statements: list[Node] = getattr(node, "body", [])
    match node:
        case gast.Lambda(
            body=gast.Call(func=gast.Name(id="setattr"), args=[owner, gast.Constant(value=str(name)), value]) as made
        ):  # an expression for what is a statement
            target = gast.copy_location(gast.Attribute(owner, name, gast.Store()), made)
            stored = gast.copy_location(gast.Assign(targets=[target], value=value), made)
            return [stored, gast.copy_location(gast.Return(value=constant(None, made)), made)]
    if isinstance(node, gast.Lambda):
        return [gast.copy_location(gast.Return(value=node.body), node.body)]
    return statements


def _generates(node: Node) -> bool:
    parts = [] if isinstance(node, gast.Lambda) else [part for one in node.body for part in gast.walk(one)]
    return any(isinstance(part, gast.Yield | gast.YieldFrom) for part in parts)


def _without_defaults(node: Node) -> Node:
    absent = [None if one is None else constant(None, node) for one in node.args.kw_defaults]
    defaults = [constant(None, node) for _ in node.args.defaults]
    return with_fields(node, args=with_fields(node.args, defaults=defaults, kw_defaults=absent))


def _call_of(func: Node, head: Head, at: Node, before: Sequence[Node] = (), bound: Sequence[Node] = ()) -> Node:
    args, keywords = head.handed_on
    called = gast.Call(func=func, args=[*before, *args], keywords=[*bound, *keywords])
    return gast.copy_location(gast.Return(value=gast.copy_location(called, at)), at)


def _head_of(node: Node) -> Head:
    """The parameters of a function of the user's source."""
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    pairs = [
        *zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True),
        *(
            (one, default)
            for one, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
            if default is not None
        ),
    ]
    literal = {one.id: default.value for one, default in pairs if is_constant(default)}
    made = {one.id: default for one, default in pairs if not is_constant(default)}
    given = [load(one.id, node) for one in positional]
    if args.vararg is not None:
        given.append(gast.copy_location(gast.Starred(load(args.vararg.id, node), gast.Load()), node))
    keywords = [gast.keyword(arg=one.id, value=load(one.id, node)) for one in args.kwonlyargs]
    if args.kwarg is not None:
        keywords.append(gast.keyword(arg=None, value=load(args.kwarg.id, node)))
    whole = _without_defaults(node).args
    order = [one.id for one, _ in pairs]
    return Head(whole, (given, keywords), {n: literal.get(n) for n in order}, made)


def _head_like(fn: FunctionType | None, skip: int, at: Node) -> Head:
    """The parameters of a function that exists, without the first `skip`; `*args` for one that is not known."""

    def parameter(name: str) -> Node:
        return gast.copy_location(gast.Name(name, gast.Param(), None, None), at)

    found = [] if fn is None else list(inspect.signature(fn, follow_wrapped=False).parameters.values())[skip:]
    kinds = (PARAMETER.POSITIONAL_ONLY, PARAMETER.POSITIONAL_OR_KEYWORD, PARAMETER.KEYWORD_ONLY)
    if fn is None or any(one.kind not in kinds for one in found):
        star = gast.copy_location(gast.Starred(load(REST, at), gast.Load()), at)
        return Head(with_fields(_no_parameters(at), vararg=parameter(REST)), ([star], []))
    only, plain, named = ([one for one in found if one.kind is kind] for kind in kinds)
    absent = PARAMETER.empty
    defaults = [constant(None, at) for one in (*only, *plain) if one.default is not absent]
    args = with_fields(
        _no_parameters(at),
        posonlyargs=[parameter(one.name) for one in only],
        args=[parameter(one.name) for one in plain],
        kwonlyargs=[parameter(one.name) for one in named],
        kw_defaults=[None if one.default is absent else constant(None, at) for one in named],
        defaults=defaults,
    )
    keywords = [gast.keyword(arg=one.name, value=load(one.name, at)) for one in named]
    given = {one.name: one.default for one in found if one.default is not absent}
    return Head(args, ([load(one.name, at) for one in (*only, *plain)], keywords), given)


def _no_parameters(at: Node) -> Node:
    return gast.copy_location(no_parameters(), at)
