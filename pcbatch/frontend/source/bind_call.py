"""Binding the arguments of a call to the parameters of a batched function, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType
from typing import Any

import gast

from pcbatch.data.functions.sequence_operators import star_rest
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.function_unit import Faults
from pcbatch.frontend.source.tree import Node, constant, display, is_supported, with_fields

SHORT_TEXT = 40
ANY = "any"  # number of arguments in `*args`


@dataclass(frozen=True, slots=True)
class Binding:
    """The arguments of a call, each by its parameter.

    `given`: parameter and expression, in the order of evaluation. `defaults`: parameter, text and object of arguments
    that exist already. `order`: all parameters. `shape`: the number of arguments in `*args` and the names in
    `**kwargs`; a function is compiled once for each shape.
    """

    given: tuple[tuple[str, Node], ...]
    defaults: tuple[tuple[str, str, Any], ...]
    order: tuple[str, ...]
    shape: Mapping[str, object] = field(default_factory=dict)


def bind(faults: Faults, node: Node, target: Target) -> Binding:
    """Match the arguments of a call with the parameters of its target; misfits are recorded in `faults`."""
    shape = _Shape.of(target.fn)
    name = target.fn.__name__
    rest_of_lane = _rest_of_lane(node)
    if rest_of_lane is not None and shape.rest is not None:
        node = with_fields(node, args=node.args[:-1])
    if any(isinstance(a, gast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        faults.add(
            "PCB205",
            f"a call of the batched function `{name}` cannot unpack these arguments",
            node,
            "how many there are must be visible here",
            helps=("write the arguments out, or pass the tuple or dict itself as one argument",),
        )
        return Binding((), (), ())
    free = shape.positional[len(target.args) :]
    given = dict(zip(free, node.args, strict=False))
    extra = node.args[len(free) :]
    if extra and shape.rest is None:
        _wrong(faults, extra[0], f"`{name}` takes {_count(free)} but {len(node.args)} were given", target.fn)
    fixed = _Fixed.of(faults, node, target, shape)
    for parameter, argument in zip(free, node.args, strict=False):
        if parameter in fixed.keywords:  # a keyword may replace what a partial fixes, a positional argument may not
            _wrong(faults, argument, f"`{name}` got two values for `{parameter}`", target.fn)
    if shape.rest is not None:
        extra = [*fixed.rest, *extra]
        given[shape.rest] = rest_of_lane or display(extra, extra[0] if extra else node)
    more = dict(fixed.more)
    for keyword in node.keywords:
        known = keyword.arg in shape.by_name
        if not known and shape.more is not None:
            more[keyword.arg] = keyword.value
        elif not known:
            _wrong(faults, keyword, f"`{name}` has no keyword parameter `{keyword.arg}`", target.fn)
        elif keyword.arg in given or keyword.arg in shape.positional[: len(target.args)]:
            _wrong(faults, keyword, f"`{name}` got two values for `{keyword.arg}`", target.fn)
        else:
            given[keyword.arg] = keyword.value
    if shape.more is not None:
        keys = [constant(key, value) for key, value in more.items()]
        given[shape.more] = gast.copy_location(gast.Dict(keys=keys, values=list(more.values())), node)
    defaults = _bound(target, shape, given) + _defaults(target.fn, [p for p in shape.order if p not in given])
    defaults = tuple({d[0]: d for d in reversed(defaults)}.values())
    missing = [p for p in shape.order if p not in given and p not in {d[0] for d in defaults}]
    if missing:
        listed = ", ".join(f"`{p}`" for p in missing)
        _wrong(faults, node, f"this call of `{name}` does not give {listed}", target.fn)
    counted = {"*": str(len(extra)) if rest_of_lane is None else ANY} if shape.rest is not None else {}
    named = {"**": ",".join(more)} if shape.more is not None else {}
    return Binding(tuple(given.items()), defaults, shape.order, counted | named)


def starred(
    node: Node, target: Target, item: Callable[[Node, int, int], Node], counted: Callable[[Node, int], int]
) -> Node:
    """The call with one `*values` replaced by `item(values, k, count)` for each of the `count` missing arguments.

    Where parameters are optional, `counted(values, least)` says how many there are. Other calls are returned unchanged:
    they have no star, or several.
    """
    positions = [k for k, a in enumerate(node.args) if isinstance(a, gast.Starred)]
    if len(positions) != 1 or _rest_of_lane(node) is not None:
        return node
    shape = _Shape.of(target.fn)
    named = {k.arg for k in node.keywords}
    optional = shape.positional[len(shape.positional) - len(target.fn.__defaults__ or ()) :]
    needed = (p for p in shape.positional[len(target.args) :] if p not in named and p not in optional)
    count = len(list(needed)) - (len(node.args) - 1)
    k = positions[0]
    values = node.args[k].value
    if shape.rest is not None or not named.issuperset(optional):
        count = counted(values, max(count, 0))
    if count < 0:
        return node
    args = [*node.args[:k], *(item(values, n, count) for n in range(count)), *node.args[k + 1 :]]
    return gast.copy_location(gast.Call(func=node.func, args=args, keywords=node.keywords), node)


def _rest_of_lane(node: Node) -> Node | None:
    """The tuple that a call gives to `*args` as it is, as types tell how long it is; None where there is none."""
    last = node.args[-1] if node.args else None
    return last.value if isinstance(last, gast.Starred) and is_supported(last.value, star_rest) else None


@dataclass(frozen=True, slots=True)
class _Fixed:
    """The arguments that a partial fixes for `*args` and for `**kwargs`, and the names of all its keywords."""

    rest: tuple[Node, ...]
    more: Mapping[str, Node]
    keywords: frozenset[str]

    @staticmethod
    def of(faults: Faults, node: Node, target: Target, shape: _Shape) -> _Fixed:
        rest = target.args[len(shape.positional) :]
        more = {name: value for name, value in target.keywords if name not in shape.by_name}
        name = target.fn.__name__
        if rest and shape.rest is None:
            _wrong(
                faults, node, f"`{name}` takes {_count(shape.positional)} but {len(target.args)} are fixed", target.fn
            )
        elif more and shape.more is None:
            _wrong(faults, node, f"`{name}` has no keyword parameter `{next(iter(more))}`", target.fn)
        elif not all(_text(value, "") for value in (*rest, *more.values())):
            title = f"only numbers and strings can be fixed for the `*` and `**` of the batched function `{name}`"
            faults.add("PCB205", title, node, helps=("pass the others in the call",))
        else:
            literals = {key: constant(value, node) for key, value in more.items()}
            return _Fixed(tuple(constant(value, node) for value in rest), literals, frozenset(dict(target.keywords)))
        return _Fixed((), {}, frozenset())


@dataclass(frozen=True, slots=True)
class _Shape:
    """The parameters of a function; `order` has all of them, in the order of the compiled function."""

    positional: tuple[str, ...]
    by_name: frozenset[str]
    rest: str | None  # *args
    more: str | None  # **kwargs
    order: tuple[str, ...]

    @staticmethod
    def of(function: FunctionType) -> _Shape:
        code = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = code.co_varnames
        rest = names[count] if code.co_flags & CO_VARARGS else None
        more = names[count + (rest is not None)] if code.co_flags & CO_VARKEYWORDS else None
        order = (*names[:count], *(star for star in (rest, more) if star is not None))
        by_name = frozenset(names[code.co_posonlyargcount : count])
        return _Shape(names[: code.co_argcount], by_name, rest, more, order)


def _bound(target: Target, shape: _Shape, given: Mapping[str, Node]) -> tuple[tuple[str, str, Any], ...]:
    """The arguments bound by a method or a partial: parameter, text and object, as for defaults."""
    values = dict(zip(shape.positional, target.args, strict=False))
    values |= {name: value for name, value in target.keywords if name in shape.by_name and name not in given}
    return tuple((name, _text(value, name), value) for name, value in values.items())


def _defaults(function: FunctionType, names: list[str]) -> tuple[tuple[str, str, Any], ...]:
    values = function.__defaults__ or ()
    code = function.__code__
    positional = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    known: dict[str, tuple[Any, str]] = {}  # parameter -> its default and an expression for that
    for i, (p, value) in enumerate(zip(positional, values, strict=True)):
        known[p] = (value, f"{function.__name__}.__defaults__[{i}]")
    for p, value in (function.__kwdefaults__ or {}).items():
        known[p] = (value, f"{function.__name__}.__kwdefaults__[{p!r}]")
    return tuple((p, _text(*known[p]), known[p][0]) for p in names if p in known)


def _text(value: object, path: str) -> str:
    """The literal of a value if that is short, else `path`, an expression that finds the value."""
    if value is None or isinstance(value, bool | int | float | complex | str):
        text = repr(value)
        if len(text) <= SHORT_TEXT and "nan" not in text and "inf" not in text:
            return text
    return path


def _wrong(faults: Faults, node: Node, title: str, function: FunctionType) -> None:
    names = _Shape.of(function).order
    help = "pass each parameter once; only those with a default may be left out"
    faults.add("PCB204", title, node, notes=(f"its parameters are ({', '.join(names)})",), helps=(help,))


def _count(positional: tuple[str, ...]) -> str:
    return f"{len(positional)} positional argument{'' if len(positional) == 1 else 's'}"
