"""The forms of `print` and `raise` that lanes lack."""

from __future__ import annotations

import gast

from pcbatch.frontend.build.messages import exception_class, exception_parts, fits, is_debug_print
from pcbatch.frontend.source.function_unit import Faults, Unit
from pcbatch.frontend.source.tree import SCOPES, Node, children, is_constant, is_none

PRINT_KEYWORDS = frozenset({"sep", "end", "flush"})


def check_print(unit: Unit, faults: Faults, node: Node) -> None:
    """Record the unsupported parts of a statement `print(...)` or `jax.debug.print(...)`."""
    if any(isinstance(arg, gast.Starred) for arg in node.args) or any(k.arg is None for k in node.keywords):
        title = "`print` cannot unpack its arguments in a lane"
        faults.add("PCB119", title, node, helps=("write the arguments out, or print the tuple itself",))
    elif is_debug_print(unit, node):
        _check_template(faults, node)
    else:
        for keyword in node.keywords:
            if keyword.arg not in PRINT_KEYWORDS and not is_none(keyword.value):
                title = f"`print` in a lane has no `{keyword.arg}`"
                faults.add("PCB119", title, keyword, helps=("leave it out: lanes print to the standard output",))


def _check_template(faults: Faults, node: Node) -> None:
    text = node.args[0] if node.args else None
    if text is None or not is_constant(text) or not isinstance(text.value, str):
        title = "the format of `jax.debug.print` must be a literal string"
        faults.add(
            "PCB119", title, text or node, helps=('write `jax.debug.print("x = {}", x)`, or `print(f"x = {x}")`',)
        )
    elif not fits(text.value, node.args[1:], node.keywords):
        title = "this format does not fit its arguments"
        help = "give one argument for every `{}` or `{name}`, and the part itself where `{x.y}` or `{x[0]}` is meant"
        faults.add("PCB119", title, text, helps=(help,))


def check_raise(unit: Unit, faults: Faults, node: Node) -> None:
    """Record the unsupported parts of a statement `raise`."""
    if node.exc is None:
        title = "`raise` without an exception is not supported"
        faults.add("PCB103", title, node, "there is none to raise again", helps=("name one: `raise ValueError(...)`",))
        return
    if node.cause is not None and not is_none(node.cause) and not _is_caught(unit, node.cause):
        title = "`raise` with a cause is not supported"
        faults.add("PCB103", title, node.cause, "a lane has no other exception", helps=("leave `from` out",))
    raised, args, keywords = exception_parts(node.exc)
    if exception_class(unit, raised) is None:
        title = "a lane can raise only an exception class that is known while compiling"
        help = "write `raise ValueError(...)`, with the class as a global, a builtin or a closure variable"
        faults.add("PCB103", title, raised, helps=(help,))
    elif any(isinstance(a, gast.Starred) for a in args) or any(k.arg is None for k in keywords):
        title = "the arguments of an exception cannot be unpacked in a lane"
        faults.add("PCB103", title, node.exc, helps=("write them out, or pass the tuple itself",))


def _is_caught(unit: Unit, cause: Node) -> bool:
    """Whether a name is that of a caught exception, and never of anything else: as a cause it changes no value."""
    name = str(getattr(cause, "id", ""))
    handlers = [part for node in unit.body for part in gast.walk(node) if isinstance(part, gast.ExceptHandler)]
    caught = [handler for handler in handlers if getattr(handler.name, "id", handler.name) == name]
    return bool(caught) and len(unit.bound.get(name, ())) <= len(caught)


def check_no_walrus(faults: Faults, node: Node) -> None:
    """Record `:=` in a message, whose values are all read at its end, after every assignment."""
    if _assigns(node):
        title, label = "`:=` inside a message is not supported", "assigns while the message is put together"
        faults.add("PCB114", title, node, label, helps=("assign in a statement of its own before",))


def _assigns(node: Node) -> bool:
    """Whether the evaluation of an expression assigns a variable by `:=`."""
    if isinstance(node, SCOPES):
        return False
    return isinstance(node, gast.NamedExpr) or any(_assigns(child) for child in children(node))
