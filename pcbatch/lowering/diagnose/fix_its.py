"""Fix-its for expressions that need a constant where they have a value of a lane.

The expression is parsed again from its source: `np.floor(x)` needs another help than `xs[:n]` or `xs[i]` of a list,
although JAX raises the same error for all of them.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import jax
import numpy as np

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.errors import Refusal, TruthOfArray
from pcbatch.lowering.diagnose.numpy_fix_its import SHAPE, is_sized, numpy_helps, numpy_name, own_arguments, sized_helps
from pcbatch.lowering.diagnose.resolve_names import Names, held, meaning, spelled
from pcbatch.lowering.diagnose.traceback_spans import source
from pcbatch.lowering.typing.trace_errors import KeptFunction

WHERE = "to choose by element use `jnp.where(condition, a, b)`"
KEYS = "a dict finds nothing by a value of a lane: use `match`, or an array and its index"
ALIKE = "an index of the lane chooses among elements of one type and shape: make them alike, or choose with `if`"
UNROLL = "or, if the index is that of a short loop, make it known: `for i in pcbatch.unroll(range(...))`"
PYTHON = "`{}` computes with Python's numbers: write what it computes with functions of `jnp`"
CONVERTED = {
    "int": "or keep the array: write `{0}.astype(int)`",
    "float": "or keep the array: write `{0}.astype(float)`",
}
UPDATES = {
    "set": "{1}",
    "add": "{0} + ({1})",
    "subtract": "{0} - ({1})",
    "multiply": "{0} * ({1})",
    "divide": "{0} / ({1})",
    "power": "{0} ** ({1})",
}
CONVERSIONS = frozenset({"int", "float", "complex", "range"})
ITEMS = {"item": "the array itself is the number", "tolist": "the array itself holds the numbers"}
INDEXED = frozenset({"repeat", "nonzero"})  # methods of arrays that need a length


def expression(loc: Loc | None) -> ast.expr | None:
    """Return the expression in a span of the source; None if the span holds something else."""
    try:
        return None if loc is None else ast.parse(f"({source(loc)}\n)", mode="eval").body
    except SyntaxError:
        return None


def constant_helps(error: Exception, node: ast.expr | None, names: Names) -> tuple[str, ...]:
    """Return the helps for a value of a lane at `node`, where `error` says that a constant is needed.

    `names` are the names visible at `node`, with the objects they are bound to.
    """
    match node:
        case ast.Call():
            return _call_helps(error, node, names)
        case ast.Subscript():
            return _subscript_helps(error, node, names)
    return (SHAPE,)


def needs_branches(node: ast.expr | None, names: Names) -> bool:
    """Return whether a fix-it for this expression has branches, which a helper must be decorated for."""
    if not isinstance(node, ast.Call):
        return False
    return _builtin(node, names) in CONVERSIONS


def refusal_helps(error: Refusal, loc: Loc | None) -> tuple[str, ...]:
    """Return the helps of a refusal, made specific to the source at `loc` where that is possible."""
    node = expression(loc)
    if loc is None or node is None:
        return error.helps
    match error, node:
        case KeptFunction(), _:
            return _function_helps(loc, node) or error.helps
        case TruthOfArray(), ast.Call(func=ast.Name(id="max" | "min")):
            return error.helps
        case TruthOfArray(), _:
            return _truth_helps(node)
        case Refusal(code="PCB306"), ast.Call(func=ast.Name(id="int" | "float" as name), args=[value]):
            return (f"write `{_operand(value)}.astype({name})`",)
        case Refusal(code="PCB306"), ast.Call(func=ast.Name(id="complex"), args=[value]):
            return (f"write `jnp.asarray({ast.unparse(value)}, complex)`",)
    return error.helps


def _function_helps(value: Loc, node: ast.expr) -> tuple[str, ...]:
    """The help for `g = jax.grad(...)`, of which `value` is the span of the expression on the right."""
    before = re.fullmatch(r"\s*(\w+) = ", linecache.getline(value.file, value.line)[: value.col])
    if before is None or not isinstance(node, ast.Call | ast.Attribute | ast.Name):
        return ()
    name, made = before[1], ast.unparse(node)
    if made.startswith(("functools.partial(", "partial(")):
        # A partial holds the values that its variables have here; a `def` reads them when it is called.
        late = "which reads its variables when it is called"
        return (f"call it where it is made: `{made}(z)`", f"or use `def {name}(z): return {made}(z)`, {late}")
    return (f"define the function with `def {name}(z): return {made}(z)`", f"or call it where it is made: `{made}(z)`")


def _truth_helps(node: ast.expr) -> tuple[str, ...]:
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node = node.operand
    text = ast.unparse(node)
    reduced = (f"`jnp.all({text})` asks for all elements, `jnp.any({text})` for one of them", WHERE)
    if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
        return reduced
    empty = f"to ask whether it is empty write `len({text}) == 0`, to ask whether it is not `len({text}) > 0`"
    return (empty, *reduced)


def _operand(node: ast.expr) -> str:
    simple = ast.Name | ast.Attribute | ast.Subscript | ast.Call
    return ast.unparse(node) if isinstance(node, simple) else f"({ast.unparse(node)})"


def _builtin(call: ast.Call, names: Names) -> str:
    """The name of the builtin that is called; an empty text for other calls."""
    own = isinstance(call.func, ast.Name) and call.func.id in names
    return call.func.id if isinstance(call.func, ast.Name) and not own else ""


def _call_helps(error: Exception, call: ast.Call, names: Names) -> tuple[str, ...]:
    if (name := numpy_name(call.func, names)) is not None:
        return numpy_helps(name, call, names)
    builtin = _builtin(call, names)
    if builtin in CONVERTED and len(call.args) == 1:
        return (CONVERTED[builtin].format(_operand(call.args[0])),)
    text = ast.unparse(call.func)
    match call.func:
        case ast.Attribute(value=value, attr=("item" | "tolist") as name) if not call.args:
            return (f"write `{ast.unparse(value)}`: {ITEMS[name]}",)
        case ast.Attribute(value=value, attr=name) if isinstance(held(value, names), np.ndarray):
            method = f"jnp.asarray({ast.unparse(value)}).{name}({', '.join(own_arguments(call))})"
            return (spelled(f"make it an array of JAX: `{method}`", names),)
        case ast.Attribute(
            value=ast.Subscript(value=ast.Attribute(value=array, attr="at"), slice=mask), attr=update
        ) if len(call.args) == 1 and update in UPDATES and isinstance(error, jax.errors.NonConcreteBooleanIndexError):
            old, new = _operand(array), ast.unparse(call.args[0])
            return (f"write `jnp.where({ast.unparse(mask)}, {UPDATES[update].format(old, new)}, {old})`",)
        case ast.Attribute(attr=name) if not _has_size(call) and _by_values(call, name, names):
            return sized_helps(text, own_arguments(call))
    if isinstance(error, jax.errors.TracerArrayConversionError) or _asks_a_number(error):
        return (PYTHON.format(text),)
    return (SHAPE,)


def _by_values(call: ast.Call, name: str, names: Names) -> bool:
    """Whether a call, of a function of `jnp` or a method of an array, has a result whose length depends on values."""
    base = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    module = isinstance(meaning(base, names), ModuleType) or (not names and isinstance(base, ast.Name))
    return is_sized(name, call) if module else name in INDEXED


def _has_size(call: ast.Call) -> bool:
    return any(keyword.arg in ("size", "length", "total_repeat_length") for keyword in call.keywords)


def _asks_a_number(error: Exception) -> bool:
    return any(f"the `{name}` function" in str(error) for name in ("float", "int", "complex"))


def _subscript_helps(error: Exception, node: ast.Subscript, names: Names) -> tuple[str, ...]:
    table = ast.unparse(node.value)
    match node.value, node.slice:
        case _, ast.Slice() if _is_list(error):
            is_tuple = isinstance(node.value, ast.Tuple) or isinstance(held(node.value, names), tuple)
            whole = ast.Call(ast.Name("list"), [node.value], [])
            part = ast.unparse(ast.Subscript(whole, node.slice))
            return (f"make it a list: `{part}`" if is_tuple else ALIKE, UNROLL)
        case _, ast.Slice() as part:
            return _slice_helps(table, part)
        case _, mask if isinstance(error, jax.errors.NonConcreteBooleanIndexError):
            return (_mask_help(table, ast.unparse(mask)),)
        case _, index:
            return _index_helps(error, node.value, index, names)


def _slice_helps(array: str, part: ast.Slice) -> tuple[str, ...]:
    low = "" if part.lower is None else ast.unparse(part.lower)
    tests = [f"({_from_start(part.lower, array)} <= k)"] if part.lower is not None else []
    tests += [f"(k < {_from_start(part.upper, array)})"] if part.upper is not None else []
    helps = [f"take a slice of constant size: `jax.lax.dynamic_slice_in_dim({array}, {low or 0}, size)`"]
    if part.step is not None:
        if not (isinstance(part.step, ast.Constant) and isinstance(part.step.value, int) and part.step.value > 0):
            return (SHAPE,)
        tests.append(
            f"((k - {_operand(part.lower)}) % {part.step.value} == 0)"
            if part.lower is not None
            else f"(k % {part.step.value} == 0)"
        )
        helps = []
    masked = f"`jnp.where({' & '.join(tests) or 'mask'}, {array}, 0)`"
    return (*helps, f"or keep the shape and mask what is outside, with `k = jnp.arange(len({array}))`: {masked}")


def _from_start(end: ast.expr, array: str) -> str:
    """An end of a slice, which may be counted from the end of the array."""
    from_end = isinstance(end, ast.UnaryOp) and isinstance(end.op, ast.USub)
    return f"({ast.unparse(end)}) % len({array})" if from_end else ast.unparse(end)


def _mask_help(array: str, mask: str) -> str:
    return f"keep the shape: `jnp.where({mask}, {array}, 0)` in place of `{array}[{mask}]`"


def _index_helps(error: Exception, node: ast.expr, index: ast.expr, names: Names) -> tuple[str, ...]:
    table, at = ast.unparse(node), ast.unparse(index)
    container = held(node, names)
    if isinstance(container, Mapping):
        return (KEYS,)
    unroll = (UNROLL,) if _is_list(error) else ()
    if isinstance(container, tuple | list) and container:
        if all(map(callable, container)):
            last = min(len(container) - 1, 2)  # two conditions show the pattern
            choices = " else ".join([f"{table}[{k}](...) if {at} == {k}" for k in range(last)])
            text = f"{choices} else {table}[{last}](...)" if choices else f"{table}[0](...)"
            return (f"write the choice out: `{text}`", *unroll)
        if any(isinstance(leaf, str | bytes) for leaf in jax.tree.leaves(container)):
            return (f"keep the number, and look it up outside: `{table}[int({at})]`", *unroll)
        if not _is_table(container):
            return ("an array has rows of one length: fill them up to the longest, or choose with `if`", *unroll)
    if _is_list(error):
        return (ALIKE, *unroll)
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return (spelled(f"make it an array: `jnp.asarray({table})[{at}]`", names), *unroll)
    return (SHAPE,)


def _is_table(rows: Sequence[Any]) -> bool:
    """Whether these rows are numbers of one shape, so that they can be made an array."""
    shapes = {(jax.tree.structure(row), tuple(map(np.shape, jax.tree.leaves(row)))) for row in rows}
    numbers = (jax.Array, np.ndarray, np.generic, bool, int, float, complex)
    return len(shapes) == 1 and all(isinstance(leaf, numbers) for leaf in jax.tree.leaves(rows))


def _is_list(error: Exception) -> bool:
    """Whether the error comes from an index of a list or tuple, which needs an integer of Python."""
    return isinstance(error, jax.errors.TracerIntegerConversionError)
