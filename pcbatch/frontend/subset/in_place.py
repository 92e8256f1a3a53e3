"""Helps against changes in place, in the words of the source: for `xs[i] = v`, a swap, `xs.append(v)`."""

from __future__ import annotations

import re

import gast

from pcbatch.diagnostics.short_repr import sorted_array
from pcbatch.frontend.source.tree import Node, one_line

LONGEST = 50  # characters of a value that is repeated in a help
UPDATES = {gast.Add: "add", gast.Sub: "subtract", gast.Mult: "multiply", gast.Div: "divide", gast.Pow: "power"}

MASKS = (gast.Compare, gast.BoolOp, gast.UnaryOp)
METHODS = frozenset("append extend insert pop remove clear sort reverse update setdefault popitem add discard".split())
LENGTH = (
    "a list is equally long in all lanes; where a lane decides, use an array of the greatest size and a counter: "
    "`{0}, size = {0}.at[size].set({1}), size + 1`"
)
GROWING = (
    "a list cannot grow in a loop: before it, make an array of the greatest size and a counter, "
    "`{0}, size = jnp.zeros(N), 0`; in it, `{0}, size = {0}.at[size].set({1}), size + 1`"
)
COUNTER = "where a lane decides how long it is, use an array and a counter: `size -= 1`, and then `{0}[size]`"
SET = "use a bool array, `{0} = {0}.at[{1}].set({2})`, for what is in the set"
HELPS = {
    "append": ("make a new list: `{0} = [*{0}, {1}]`", LENGTH),
    "extend": ("make a new list: `{0} = [*{0}, *{1}]`",),
    "insert": ("make a new list: `{0} = [*{0}[:{1}], {2}, *{0}[{1}:]]`",),
    "clear": ("make a new one: `{0} = []` or `{0} = {{}}`", "for an array with a counter: `size = 0`"),
    "reverse": ("make a new one: `{0} = {0}[::-1]`",),
    "setdefault": ("make a new dict: `{0} = {{**{0}, {1}: {0}.get({1}, {2})}}`",),
    "popitem": ("make a new dict: `{0} = dict(list({0}.items())[:-1])`",),
    "remove": (
        "make a new list without it, `{0} = [*{0}[:i], *{0}[i + 1 :]]`, where `i` is its place",
        "for a set, " + SET.replace("{2}", "False"),
    ),
    "add": (SET.replace("{2}", "True"),),
    "discard": (SET.replace("{2}", "False"),),
}


def swap_help(statement: Node) -> str | None:
    """The help for several assignments to elements of one array, such as a swap; None for other statements."""
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


def element_helps(target: Node, statement: Node, variables: frozenset[str]) -> tuple[str, ...]:
    """The helps for an assignment to `target`, an element or a slice; `variables` are those of the lane."""
    base, index = target.value, _index(target)
    if isinstance(base, gast.Subscript) and isinstance(base.value, gast.Name):
        base, index = base.value, f"{_index(base)}, {index}"
    elif not isinstance(base, gast.Name):
        return (f"make a new value with `{one_line(base)}.at[{index}].set(v)` in that place",)
    name, array = base.id, _array_help(base.id, index, target, statement)
    of_lane = any(isinstance(part, gast.Name) and part.id in variables for part in gast.walk(target.slice))
    if isinstance(target.value, gast.Name) and isinstance(target.slice, gast.Slice) and of_lane:
        return (_masked_help(name, target, statement),)
    as_array = f"for a list, make it an array first: `{name} = jnp.asarray({name})`"
    if isinstance(target.value, gast.Subscript):
        return (array, as_array)
    if not isinstance(target.value, gast.Name) or isinstance(target.slice, gast.Slice | gast.Tuple):
        return (array,)
    if isinstance(target.slice, MASKS) and all(isinstance(op, gast.Invert) for op in _unary(target.slice)):
        return (f"for an array, write {_chosen(name, index, target, statement)}",)
    value = _value(target, statement)
    if of_lane:
        known = f"where it is known, in `for {index} in pcbatch.unroll(...)`, `{name} = {{**{name}, {index}: {value}}}`"
        return (
            array,
            as_array,
            f"a dict takes no value of a lane as a key: use an array with an element for every key; {known}",
        )
    entry = f"for a dict, `{name} = {{**{name}, {index}: {value}}}`"
    if isinstance(target.slice, gast.Constant) and isinstance(target.slice.value, str):
        return (entry,)
    return (array, entry, f"for a list, `{name} = {_replaced(name, target.slice, value)}`")


def _replaced(name: str, index: Node, value: str) -> str:
    """An expression for a list with another value at a known index."""
    at = one_line(index)
    negative = isinstance(index, gast.UnaryOp) and isinstance(index.op, gast.USub)
    if negative and isinstance(index.operand, gast.Constant) and index.operand.value == 1:
        return f"[*{name}[:-1], {value}]"
    after = index.value + 1 if isinstance(index, gast.Constant) and isinstance(index.value, int) else f"{at} + 1"
    return f"[*{name}[:{at}], {value}, *{name}[{after}:]]"


def _masked_help(name: str, target: Node, statement: Node) -> str:
    """The help for an assignment to a slice whose ends depend on the lane."""
    low, high = (None if end is None else one_line(end) for end in (target.slice.lower, target.slice.upper))
    step = target.slice.step
    if isinstance(step, gast.UnaryOp):  # a step down: which end is open depends on its sign
        element = _chosen(name, "k == index", target, statement)
        return f"for an array, write {element} in a loop over the indices, with `k = jnp.arange(len({name}))`"
    tests = ([f"({low} <= k)"] if low is not None else []) + ([f"(k < {high})"] if high is not None else [])
    if step is not None:
        offset = "k" if low is None else f"(k - ({low}))"
        tests.append(f"({offset} % ({one_line(step)}) == 0)")
    where = _chosen(name, " & ".join(tests), target, statement)
    return f"for an array, and ends from 0 to its length, write {where}, with `k = jnp.arange(len({name}))`"


def _chosen(name: str, mask: str, target: Node, statement: Node) -> str:
    """An assignment of an array with another value where a mask holds."""
    value = _value(target, statement)
    if isinstance(statement, gast.AugAssign):
        whole = gast.BinOp(left=target.value, op=statement.op, right=statement.value)
        value = _short(gast.copy_location(whole, target))
    return f"`{name} = jnp.where({mask}, {value}, {name})`"


def _unary(node: Node) -> list[Node]:
    return [node.op] if isinstance(node, gast.UnaryOp) else []


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


def attribute_help(target: Node, statement: Node) -> str | None:
    """The help for an assignment to an attribute of a variable; None for attributes of other expressions."""
    if not isinstance(target.value, gast.Name):
        return None
    name, field = target.value.id, f"{target.attr}={_value(target, statement)}"
    namedtuple = f"`{name} = {name}._replace({field})` for a namedtuple"
    return f"make a new value: {namedtuple}, `{name} = dataclasses.replace({name}, {field})` for a dataclass"


def delete_helps(target: Node) -> tuple[str, ...]:
    """The helps for `del d[key]` and `del xs[i]`; none for other targets."""
    if not isinstance(target, gast.Subscript) or not isinstance(target.value, gast.Name):
        return ()
    if isinstance(target.slice, gast.Slice | gast.Tuple):
        return ()
    name, key = target.value.id, _index(target)
    k, v = ("each", "value") if re.search(r"\b[kv]\b", key) else ("k", "v")  # not names that the key reads
    entry = f"make a new value: `{name} = {{{k}: {v} for {k}, {v} in {name}.items() if {k} != {key}}}` for a dict"
    if isinstance(target.slice, gast.Constant) and isinstance(target.slice.value, str):
        return (entry,)
    return (entry, _pop_help(name, [target.slice]).replace("make a new list: ", "") + " for a list")


def method_helps(call: Node, in_loop: bool) -> tuple[str, ...]:
    """The helps for a call of a method in `METHODS`, such as `xs.append(v)`."""
    name, method = one_line(call.func.value), call.func.attr
    args = [_short(arg) for arg in call.args]
    match method:
        case "pop":
            return (_pop_help(name, call.args), *([COUNTER.format(name)] if not args else []))
        case "update":
            items = ", ".join([*args, *(one_line(keyword) for keyword in call.keywords)])
            literal = len(call.args) == 1 and not call.keywords and isinstance(call.args[0], gast.Dict)
            return (f"make a new dict: `{name} = {{**{name}, **{items if literal else f'dict({items})'}}}`",)
        case "sort":
            options = {keyword.arg: one_line(keyword.value) for keyword in call.keywords}
            return (f"make a sorted array: `{name} = {sorted_array(name, options)}`",)
        case "append" if in_loop and args:
            listed = "in a loop over `pcbatch.unroll(...)`, make a new list: `{0} = [*{0}, {1}]`"
            return (GROWING.format(name, args[0]), listed.format(name, args[0]))
        case "setdefault" if len(args) == 1:
            args = [*args, "None"]
    return tuple(help.format(name, *args, *("v" for _ in range(2 - len(args)))) for help in HELPS[method])


def _pop_help(name: str, args: list[Node]) -> str:
    if not args:
        return f"make a new list: `{name} = {name}[:-1]`"
    index, key = one_line(args[0]), args[0].value if isinstance(args[0], gast.Constant) else None
    if isinstance(key, str):
        return f"make a new dict: `{name} = {{k: v for k, v in {name}.items() if k != {index}}}`"
    if key == 0:
        return f"make a new list: `{name} = {name}[1:]`"
    if index == "-1":
        return f"make a new list: `{name} = {name}[:-1]`"
    after = key + 1 if isinstance(key, int) else f"{index} + 1"
    return f"make a new list: `{name} = [*{name}[:{index}], *{name}[{after}:]]`"
