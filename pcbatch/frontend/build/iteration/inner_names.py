"""The variables of comprehensions and lambdas that are written out: they become temporaries of the function.

    [x * k for x in xs]   with x -> t3     ==>      t3 * k

Messages show them as the user wrote them.
"""

from __future__ import annotations

from collections.abc import Mapping

import gast

from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.expressions import lower_into
from pcbatch.frontend.source.scope import renamed
from pcbatch.frontend.source.tree import Node, call, load

Names = Mapping[str, str]  # a variable of a comprehension or lambda -> the temporary that it becomes


def own_name(b: Builder, name: str, at: Node) -> str:
    """Return a new variable that is shown as `name`."""
    temp = b.temp()
    b.held(temp, load(name, at))
    return temp


def applied(b: Builder, function: Node, args: list[Node], at: Node) -> Node:
    """The call `function(*args)`; a lambda is written out, with its parameters as variables of their own."""
    if not isinstance(function, gast.Lambda) or not _simple(function.args, len(args)):
        return call(function, args, at)
    names = {}
    for parameter, value in zip((*function.args.posonlyargs, *function.args.args), args, strict=True):
        names[parameter.id] = own_name(b, parameter.id, parameter)
        lower_into(b, names[parameter.id], value)
    return renamed(function.body, names)


def _simple(args: Node, count: int) -> bool:
    more = args.vararg or args.kwarg or args.kwonlyargs or args.defaults
    return not more and len(args.posonlyargs) + len(args.args) == count
