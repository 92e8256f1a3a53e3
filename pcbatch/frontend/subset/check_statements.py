"""The forms of statements that lanes lack: of `print`, `raise`, `try` and `with`, of loops, and of nested functions."""

from __future__ import annotations

import gast

from pcbatch.frontend.build.exceptions import classes_of, is_null_context, suppressed
from pcbatch.frontend.build.iteration.iterables import LAZY
from pcbatch.frontend.build.messages import exception_class, exception_parts, fits, is_debug_print
from pcbatch.frontend.source.function_unit import Faults, Unit
from pcbatch.frontend.source.resolve import builtin_name
from pcbatch.frontend.source.scope import definitions, free_reads
from pcbatch.frontend.source.streams import is_stream, needs_loop
from pcbatch.frontend.source.tree import COMPREHENSIONS, FUNCTIONS, SCOPES, Node, children, is_constant, is_none
from pcbatch.frontend.subset.rules import LOOP_HELPS, REVERSED_HELPS

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


# The arguments of loops that lanes lack, and the streams that become loops.

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


def check_names(unit: Unit, faults: Faults) -> None:
    """Record nested functions that cannot be inlined."""
    body = [] if isinstance(unit.node, gast.Lambda) else unit.node.body
    for name, node in definitions(body):
        if unit.definitions.get(name) is not node:
            _bound_twice(unit, faults, name, node)
        _check_definition_time(unit, faults, node)


def _bound_twice(unit: Unit, faults: Faults, name: str, node: Node) -> None:
    own = {id(node), *(id(target) for target in getattr(node, "targets", ()))}
    others = [place for place in unit.bound[name] if id(place) not in own]
    if others and all(isinstance(place, gast.Name) and isinstance(place.ctx, gast.Del) for place in others):
        _deleted(faults, name, node, others)
        return
    faults.add(
        "PCB203",
        f"the nested function `{name}` is bound more than once",
        node,
        "a nested function must be the only meaning of its name",
        helps=("give each function a name of its own, or choose inside one function",),
        notes=() if others else (f"`{name}` is also a parameter",),
        cause=(others[0], "also bound here") if others else None,
    )


def _deleted(faults: Faults, name: str, node: Node, deletions: list[Node]) -> None:
    """Record a `del` of a nested function, which is no variable of the lane."""
    title, label = f"the nested function `{name}` cannot be deleted", "it is no value of the lane"
    for deletion in deletions:
        faults.add("PCB113", title, deletion, label, helps=("leave the `del` out",), cause=(node, "defined here"))


def _check_definition_time(unit: Unit, faults: Faults, node: Node) -> None:
    function = node if isinstance(node, FUNCTIONS) else node.value
    args = function.args
    parts = [*getattr(function, "decorator_list", []), *args.defaults, *(d for d in args.kw_defaults if d is not None)]
    for part in parts:
        for read in free_reads(part):
            if read.id in unit.bound:
                faults.add(
                    "PCB209",
                    f"a nested function's default or decorator reads the local `{read.id}`",
                    read,
                    "evaluated when the function is defined",
                    helps=("read the variable in the body of the nested function instead",),
                )
