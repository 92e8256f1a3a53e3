"""What to write instead of a change in place: `xs[i] = v`, a swap, `xs.append(v)`; in the words of the source."""

from __future__ import annotations

import gast

from pcbatch.frontend.source.tree import Node, one_line

LONGEST = 50  # characters of a value that is repeated in a help
UPDATES = {gast.Add: "add", gast.Sub: "subtract", gast.Mult: "multiply", gast.Div: "divide", gast.Pow: "power"}

METHODS = frozenset("append extend insert pop remove clear sort reverse update setdefault popitem add discard".split())
LENGTH = (
    "a list is equally long in all lanes; where a lane decides, use an array of the greatest size and a counter: "
    "`{0}, size = {0}.at[size].set(v), size + 1`"
)
HELPS = {
    "append": ("make a new list: `{0} = [*{0}, {1}]`", LENGTH),
    "extend": ("make a new list: `{0} = [*{0}, *{1}]`", LENGTH),
    "insert": ("make a new list: `{0} = [*{0}[:i], v, *{0}[i:]]`", LENGTH),
    "pop": (
        "make a new list: `{0} = {0}[:-1]`",
        "where a lane decides how long it is, use an array and a counter: `size -= 1`, and then `{0}[size]`",
    ),
    "remove": ("make a new list without it: `{0} = [*{0}[:i], *{0}[i + 1 :]]`",),
    "clear": ("make a new one: `{0} = []` or `{0} = {{}}`", "for an array with a counter: `size = 0`"),
    "sort": ("make a sorted array: `{0} = jnp.sort(jnp.asarray({0}))`",),
    "reverse": ("make a new one: `{0} = {0}[::-1]`",),
    "update": ("make a new dict: `{0} = {{**{0}, **{1}}}`",),
    "setdefault": ("make a new dict: `{0} = {{key: v, **{0}}}`",),
    "popitem": ("make a new dict: `{0} = {{k: v for k, v in {0}.items() if k != key}}`",),
    "add": ("use a bool array, `{0} = {0}.at[{1}].set(True)`, for what is in the set",),
    "discard": ("use a bool array, `{0} = {0}.at[{1}].set(False)`, for what is in the set",),
}


def swap_help(statement: Node) -> str | None:
    """For `xs[i], xs[j] = xs[j], xs[i]`, or any assignment of several values to elements of one array."""
    target = statement.targets[0]
    value = statement.value
    if len(statement.targets) > 1 or not isinstance(target, gast.Tuple) or not isinstance(value, gast.Tuple):
        return None
    names = {_name(element) for element in target.elts}
    if len(names) != 1 or None in names or len(target.elts) != len(value.elts):
        return None
    if any(isinstance(element, gast.Starred) for element in value.elts):
        return None
    array = names.pop()
    sets = [f".at[{_index(at)}].set({one_line(v)})" for at, v in zip(target.elts, value.elts, strict=True)]
    return f"write `{array} = {array}{''.join(sets)}`: every value on the right is that of before"


def _name(node: Node) -> str | None:
    whole = isinstance(node, gast.Subscript) and isinstance(node.value, gast.Name)
    return node.value.id if whole else None


def element_helps(target: Node, statement: Node) -> tuple[str, ...]:
    """For a statement that assigns to `target`, an element of something."""
    base, index = target.value, _index(target)
    if isinstance(base, gast.Subscript) and isinstance(base.value, gast.Name):
        base, index = base.value, f"{_index(base)}, {index}"
    elif not isinstance(base, gast.Name):
        return (f"make a new value with `{one_line(base)}.at[{index}].set(v)` in that place",)
    name, array = base.id, _array_help(base.id, index, target, statement)
    if not isinstance(target.value, gast.Name) or isinstance(target.slice, gast.Slice | gast.Tuple):
        return (array,)
    value = _value(target, statement)
    entry = f"for a dict, `{name} = {{**{name}, {index}: {value}}}`"
    if isinstance(target.slice, gast.Constant) and isinstance(target.slice.value, str):
        return (entry,)
    item = (
        f"for a list, `{name} = [*{name}[:k], {value}, *{name}[k + 1 :]]` with a known `k`, or make it an array first"
    )
    return (array, entry, item)


def _array_help(name: str, index: str, target: Node, statement: Node) -> str:
    update, value = "set", _value(target, statement)
    if isinstance(statement, gast.AugAssign) and type(statement.op) in UPDATES:
        update, value = UPDATES[type(statement.op)], _short(statement.value)
    return f"for an array, write `{name} = {name}.at[{index}].{update}({value})`"


def _value(target: Node, statement: Node) -> str:
    if isinstance(statement, gast.AugAssign):
        whole = gast.copy_location(gast.BinOp(left=target, op=statement.op, right=statement.value), target)
        return _short(whole)
    plain = isinstance(statement, gast.Assign) and statement.targets[0] is target
    return _short(statement.value) if plain else "v"


def _short(node: Node) -> str:
    text = one_line(node)
    return text if len(text) <= LONGEST else "v"


def _index(node: Node) -> str:
    return one_line(node)[len(one_line(node.value)) + 1 : -1]


def method_helps(call: Node) -> tuple[str, ...]:
    """For a call such as `xs.append(v)`."""
    name = one_line(call.func.value)
    value = _short(call.args[0]) if call.args else "v"
    return tuple(help.format(name, value) for help in HELPS[call.func.attr])
