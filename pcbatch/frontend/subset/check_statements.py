"""The forms of statements that lanes lack: of changes, `print`, `raise`, `try`, `with`, loops and nested functions."""

from __future__ import annotations

from types import FunctionType, ModuleType

import gast

from pcbatch.diagnostics.impure_calls import once
from pcbatch.frontend.build.exceptions import classes_of, is_null_context, suppressed
from pcbatch.frontend.build.iteration.iterables import LAZY
from pcbatch.frontend.build.messages import exception_class, exception_parts, fits, is_debug_print, is_print
from pcbatch.frontend.source.function_unit import Faults, Unit
from pcbatch.frontend.source.impure import impure
from pcbatch.frontend.source.places import is_function_of_class, is_mutating_method, mutation, place_of
from pcbatch.frontend.source.resolve import builtin_name, callee, resolve
from pcbatch.frontend.source.rewrites.function_values import is_called_value
from pcbatch.frontend.source.rewrites.nested import ask_called
from pcbatch.frontend.source.scope import definitions, free_reads
from pcbatch.frontend.source.streams import is_stream, needs_loop
from pcbatch.frontend.source.tree import (
    COMPREHENSIONS,
    FUNCTIONS,
    SCOPES,
    Node,
    children,
    is_constant,
    is_none,
    one_line,
)
from pcbatch.frontend.subset.rules import EXPRESSIONS, LOOP_HELPS, REVERSED_HELPS
from pcbatch.frontend.subset.unused_results import unused_helps

SHARED = "all lanes, and all later calls, would share the change"
NAMELESS = "no variable holds the object that this changes"
PRINT_KEYWORDS = frozenset({"sep", "end", "flush"})


def check_statement(unit: Unit, faults: Faults, node: Node, in_handlers: frozenset[int]) -> None:
    """Record the faults of a statement itself; `in_handlers` are the nodes in handlers of exceptions."""
    match node:
        case gast.Assign(targets=targets):
            for target in targets:
                _target(unit, faults, target)
        case gast.Delete(targets=targets):
            for target in targets:
                _deletion(unit, faults, target)
        case gast.AnnAssign(target=target) | gast.For(target=target) | gast.AugAssign(target=target):
            _target(unit, faults, target)
        case gast.Expr(value=value):
            _effect(unit, faults, value)
        case gast.Try():
            _check_try(unit, faults, node)
        case gast.With():
            _check_with(unit, faults, node)
        case gast.Raise() if node.exc is not None or id(node) not in in_handlers:
            _check_raise(unit, faults, node)
            _check_no_walrus(faults, node)
        case gast.Assert(msg=message) if message is not None:
            _check_no_walrus(faults, message)


def _deletion(unit: Unit, faults: Faults, node: Node) -> None:
    if isinstance(node, gast.Tuple | gast.List):
        for element in node.elts:
            _deletion(unit, faults, element)
    elif isinstance(node, gast.Subscript | gast.Attribute):
        _place(unit, faults, node)
    elif not isinstance(node, gast.Name) or node.id in unit.nested:
        title, label = "only variables and their parts can be deleted", "it is no value of the lane"
        faults.add("PCB113", title, node, label, helps=("leave the `del` out",))


def _target(unit: Unit, faults: Faults, node: Node) -> None:
    if isinstance(node, gast.Tuple | gast.List):
        for element in node.elts:
            _target(unit, faults, element)
    elif isinstance(node, gast.Starred):
        _target(unit, faults, node.value)
    elif isinstance(node, gast.Subscript | gast.Attribute):
        _place(unit, faults, node)


def _place(unit: Unit, faults: Faults, node: Node) -> None:
    """Refuse a change of what is no part of a variable of the lane."""
    if place_of(unit, node) is None:
        _refuse_change(unit, faults, node, node.value)


def _effect(unit: Unit, faults: Faults, value: Node) -> None:
    refused = type(value).__name__ in EXPRESSIONS  # reported by the table already
    if refused or isinstance(value, gast.Constant | gast.NamedExpr) or callee(unit, value) is not None:
        return
    if is_print(unit, value):
        _check_print(unit, faults, value)
        _check_no_walrus(faults, value)
        return
    if getattr(value, "written_out", False) or mutation(unit, value, statement=True, effect=True) is not None:
        return
    is_call = isinstance(value, gast.Call)
    if is_call and is_called_value(unit, value.func):
        return
    if is_call and _changes_in_place(unit, value.func) and not is_function_of_class(unit, value.func):
        _refuse_change(unit, faults, value, value.func.value)
        return
    if is_call and _called_for_effect(unit, value):
        return
    effect = impure(unit, value, resolve(unit, value.func), frozenset()) if is_call else None
    if effect is not None:
        title, helps = once(effect.name, effect.kind, effect.draw)
        faults.add("PCB318", title, value, helps=helps)
        return
    title = "this statement has no effect on a lane"
    faults.add("PCB119", title, value, "its value is not used", helps=unused_helps(unit, value))


def _refuse_change(unit: Unit, faults: Faults, node: Node, changed: Node) -> None:
    """Record that `node` changes the object `changed`, which is no part of a variable of the lane."""
    helps: tuple[str, ...]
    root = changed
    while isinstance(root, gast.Subscript | gast.Attribute):
        root = root.value
    if isinstance(root, gast.Name) and root.id not in unit.nested:
        name = root.id
        title, label = f"`{name}` does not belong to a lane, so a lane cannot change it", SHARED
        known = name in unit.statics
        if isinstance(resolve(unit, root), type | FunctionType):
            helps = (f"keep the value in a variable of the function, and return it: `{name}` is one for all lanes",)
            faults.add("PCB117", title, node, label, helps=helps)
            return
        helps = (
            (f"pass the values of `{name}` that change as arguments, and return them",)
            if known
            else (f"make a copy in the function, `own = {name}.copy()`, or pass `{name}` as an argument and return it",)
        )
    elif (found := _taken_from_dict(unit, root)) is not None:
        place, key = found
        title, label = f"a change of what `{place}.get` gives", "the object in the dict, or another one"
        by_key = f"change it by its key where that is there, `if {key} in {place}:` and then `{place}[{key}]`"
        stored = f"`{place}.setdefault` stores the default as well, and then `{place}[{key}]` is there"
        helps = (by_key, stored) if len(root.args) == 2 else (by_key,)
    else:
        title, label = "a change of an object without a name", NAMELESS
        helps = (f"assign it to a variable first: `value = {one_line(root)}`",)
    faults.add("PCB117", title, node, label, helps=helps)


def _taken_from_dict(unit: Unit, node: Node) -> tuple[str, str] | None:
    """The text of the dict and of the key of `d.get(k)` or `d.get(k, default)`; None for other expressions."""
    match node:
        case gast.Call(func=gast.Attribute(value=value, attr="get"), args=[key, *_], keywords=[]):
            return None if place_of(unit, value) is None else (one_line(value), one_line(key))
    return None


def _called_for_effect(unit: Unit, node: Node) -> bool:
    """Ask that a function called for what it raises or prints is compiled along; False if it cannot be."""
    return ask_called(unit, node.func, node, "it is called for what it does, as its value is not used")


def _changes_in_place(unit: Unit, func: Node) -> bool:
    if not is_mutating_method(func, statement=True) or _is_at(func.value):
        return False
    return not isinstance(resolve(unit, func.value), ModuleType)  # `np.add` is no method


def _is_at(node: Node) -> bool:
    """Whether a node is `x.at[i]`, whose methods make new arrays."""
    return isinstance(node, gast.Subscript) and isinstance(node.value, gast.Attribute) and node.value.attr == "at"


def _check_print(unit: Unit, faults: Faults, node: Node) -> None:
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


def _check_raise(unit: Unit, faults: Faults, node: Node) -> None:
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


def _check_no_walrus(faults: Faults, node: Node) -> None:
    """Record `:=` in a message, whose values are all read at its end, after every assignment."""
    if _assigns(node):
        title, label = "`:=` inside a message is not supported", "assigns while the message is put together"
        faults.add("PCB114", title, node, label, helps=("assign in a statement of its own before",))


def _assigns(node: Node) -> bool:
    """Whether the evaluation of an expression assigns a variable of the user's by `:=`."""
    if isinstance(node, SCOPES):
        return False
    of_user = isinstance(node, gast.NamedExpr) and not hasattr(node.target, "made")
    return of_user or any(_assigns(child) for child in children(node))


def _check_try(unit: Unit, faults: Faults, node: Node) -> None:
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
                    title, label = f"the exception `{name}` is used as a value", "a lane keeps its parts"
                    help = f"read its text `str({name})`, its arguments `{name}.args`, an attribute, or its class"
                    kept = "assign what else it would hold to a variable before the `raise`, and use that"
                    faults.add("PCB101", title, part, label, helps=(help, kept))
                    return


def _check_with(unit: Unit, faults: Faults, node: Node) -> None:
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
                    helps=(
                        f"give its value another name before, `kept = {read.id}`, and read that in the body: "
                        f"`{read.id}` itself may have another value where the function is called",
                    ),
                )
