"""The arguments of loops that lanes lack, and the streams that become loops."""

from __future__ import annotations

import gast

from pcbatch.frontend.build.iterables import LAZY
from pcbatch.frontend.source.function_unit import Faults, Unit
from pcbatch.frontend.source.resolve import builtin_name
from pcbatch.frontend.source.streams import (
    is_stream,
    needs_loop,
)
from pcbatch.frontend.source.tree import COMPREHENSIONS, Node
from pcbatch.frontend.subset.rules import (
    LOOP_HELPS,
    REVERSED_HELPS,
)

MANY = 1000
LOOP_ARGUMENTS = {  # least and most positional arguments, keywords
    "range": (1, 3, frozenset[str]()),
    "enumerate": (1, 2, frozenset({"start"})),
    "zip": (1, MANY, frozenset({"strict"})),
    "reversed": (1, 1, frozenset[str]()),
}


def write_out(unit: Unit, node: Node, written_out: set[int]) -> None:
    """Note that a comprehension or a consumer becomes a loop, with the streams and functions that it is made of."""
    written_out.add(id(node))
    if isinstance(node, COMPREHENSIONS):
        for generator in node.generators:
            if is_stream(unit, generator.iter):
                write_out(unit, generator.iter, written_out)
    elif isinstance(node, gast.Call):
        for part in (*node.args, *(k.value for k in node.keywords)):
            if is_stream(unit, part):
                write_out(unit, part, written_out)
            else:
                written_out.add(id(part))


def check_iterable(unit: Unit, faults: Faults, node: Node, written_out: set[int]) -> None:
    """Record the faults of what a `for` loop goes over, and note the streams in it that become loops."""
    if is_stream(unit, node) and needs_loop(unit, node):
        write_out(unit, node, written_out)
    name = builtin_name(unit, node.func, LAZY) if isinstance(node, gast.Call) else None
    if name is not None:
        _loop_arguments(unit, faults, node, name, written_out)


def _loop_arguments(unit: Unit, faults: Faults, node: Node, name: str, written_out: set[int]) -> None:
    least, most, keywords = LOOP_ARGUMENTS[name]
    starred = any(isinstance(a, gast.Starred) for a in node.args) and not (name == "zip" and len(node.args) == 1)
    wrong = {k.arg for k in node.keywords} - keywords
    positional = len(node.args) + (len(node.keywords) if name == "enumerate" else 0)
    if starred or wrong or not least <= positional <= most:
        faults.add("PCB121", f"these arguments of `{name}` are not supported", node, helps=(LOOP_HELPS[name],))
    elif name == "reversed" and (inner := _lazy(unit, node.args[0])):
        title, label = f"`{inner}(...)` cannot be reversed", "Python, too, knows no last element of it"
        faults.add("PCB121", title, node.args[0], label, helps=(REVERSED_HELPS[inner],))
    elif name != "range":
        for arg in node.args[: 1 if name == "enumerate" else None]:
            check_iterable(unit, faults, arg.value if isinstance(arg, gast.Starred) else arg, written_out)


def _lazy(unit: Unit, node: Node) -> str | None:
    names = frozenset(REVERSED_HELPS)
    return builtin_name(unit, node.func, names) if isinstance(node, gast.Call) else None
