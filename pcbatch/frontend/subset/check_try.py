"""The check of `try`, `with` and `raise` without an exception."""

from __future__ import annotations

import gast

from pcbatch.frontend.build.exceptions import classes_of, is_null_context, suppressed
from pcbatch.frontend.source.function_unit import Faults, Unit
from pcbatch.frontend.source.tree import Node


def check_try(unit: Unit, faults: Faults, node: Node) -> None:
    """Record the unsupported parts of a statement `try`."""
    for handler in node.handlers:
        if classes_of(unit, handler.type) is None:
            title = "a handler names an exception class that is not known while compiling"
            help = "write `except ValueError:`, with the class as a global, a builtin or a closure variable"
            faults.add("PCB101", title, handler.type, helps=(help,))
        if handler.name is None:
            continue
        name = handler.name if isinstance(handler.name, str) else handler.name.id
        for statement in handler.body:
            causes = {id(part.cause) for part in gast.walk(statement) if isinstance(part, gast.Raise)}
            for part in gast.walk(statement):
                if id(part) in causes:  # whether it can be one is for the check of `raise`
                    continue
                if isinstance(part, gast.Name) and part.id == name and isinstance(part.ctx, gast.Load):
                    title, label = f"the exception `{name}` is used as a value", "a lane keeps only its class"
                    help = "tell what to do by the class: one `except` for each"
                    kept = "assign what it would hold to a variable before the `raise`, and use that"
                    faults.add("PCB101", title, part, label, helps=(help, kept))
                    return


def check_with(unit: Unit, faults: Faults, node: Node) -> None:
    """Record a `with` whose context a lane cannot enter."""
    if (classes := suppressed(unit, node)) is not None:
        if classes_of(unit, classes) is None:
            title = "`suppress` is given an exception class that is not known while compiling"
            faults.add("PCB101", title, node.items[0].context_expr, helps=("name the class itself",))
        return
    for item in node.items:
        if not is_null_context(unit, item) or item.optional_vars is not None:
            title, label = "`with` is not supported", "Python enters a context, lanes do not"
            faults.add("PCB102", title, node, label, helps=("open the context around the batched call",))
            return


def in_handlers(body: list[Node]) -> frozenset[int]:
    """Return the identities of the nodes that stand in handlers of exceptions."""
    tries = [part for node in body for part in gast.walk(node) if isinstance(part, gast.ExceptHandler)]
    return frozenset(id(part) for handler in tries for part in gast.walk(handler))
