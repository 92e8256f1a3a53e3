"""Binding the arguments of a call to the parameters of a batched function, before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType
from typing import Any

import gast

from pcbatch.frontend.faults import Faults
from pcbatch.frontend.tree import Node

SHORT_TEXT = 40


@dataclass(frozen=True, slots=True)
class Binding:
    """`given`: parameter and expression in evaluation order; `defaults`: parameter, text, object; `order`: all."""

    given: tuple[tuple[str, Node], ...]
    defaults: tuple[tuple[str, str, Any], ...]
    order: tuple[str, ...]


def bind(faults: Faults, node: Node, function: FunctionType) -> Binding:
    """Match the arguments of `node` with the parameters of `function`; what does not fit goes to `faults`."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    order = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    given = dict(zip(positional, node.args, strict=False))
    name = function.__name__
    if any(isinstance(a, gast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        faults.add(
            "PCB205",
            f"a call of the batched function `{name}` cannot unpack its arguments",
            node,
            "the number of arguments must be visible here",
            helps=("write the arguments out, or pass the tuple or dict itself as one argument",),
        )
        return Binding((), (), ())
    if len(node.args) > len(positional):
        _wrong(
            faults,
            node.args[len(positional)],
            f"`{name}` takes {_count(positional)} but {len(node.args)} were given",
            function,
        )
    for keyword in node.keywords:
        if keyword.arg not in order or keyword.arg in positional[: code.co_posonlyargcount]:
            _wrong(faults, keyword, f"`{name}` has no keyword parameter `{keyword.arg}`", function)
        elif keyword.arg in given:
            _wrong(faults, keyword, f"`{name}` got two values for `{keyword.arg}`", function)
        else:
            given[keyword.arg] = keyword.value
    defaults = _defaults(function, [p for p in order if p not in given])
    missing = [p for p in order if p not in given and p not in {d[0] for d in defaults}]
    if missing:
        listed = ", ".join(f"`{p}`" for p in missing)
        _wrong(faults, node, f"this call of `{name}` does not give {listed}", function)
    return Binding(tuple(given.items()), defaults, order)


def _defaults(function: FunctionType, names: list[str]) -> tuple[tuple[str, str, Any], ...]:
    values = function.__defaults__ or ()
    code = function.__code__
    positional = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    places: dict[str, tuple[Any, str]] = {}
    for i, (p, value) in enumerate(zip(positional, values, strict=True)):
        places[p] = (value, f"{function.__name__}.__defaults__[{i}]")
    for p, value in (function.__kwdefaults__ or {}).items():
        places[p] = (value, f"{function.__name__}.__kwdefaults__[{p!r}]")
    return tuple((p, _text(*places[p]), places[p][0]) for p in names if p in places)


def _text(value: object, path: str) -> str:
    """The value's own literal when that is short, else the place where it lies."""
    if value is None or isinstance(value, bool | int | float | complex | str):
        text = repr(value)
        if len(text) <= SHORT_TEXT and "nan" not in text and "inf" not in text:
            return text
    return path


def _wrong(faults: Faults, node: Node, title: str, function: FunctionType) -> None:
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    help = "pass each parameter once; only those with a default may be left out"
    faults.add("PCB204", title, node, notes=(f"its parameters are ({', '.join(names)})",), helps=(help,))


def _count(positional: tuple[str, ...]) -> str:
    return f"{len(positional)} positional argument{'' if len(positional) == 1 else 's'}"
