"""Helps for a helper that branches on values of a lane: how it is called decides which decorator works, if any."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.lowering.diagnose.traceback_spans import TracebackFrame

CHOOSE = "use `jnp.where` or `jax.lax.cond` in {}"
LAMBDA = "<lambda>"

# Functions of JAX that call a function for each element or iteration, with the loop that does the same.
LOOPS = {
    "scan": "for x in xs:",
    "fori_loop": "for i in range(low, high):",
    "while_loop": "while condition:",
    "vmap": "for k in range(len(xs)):",
    "map": "for k in range(len(xs)):",
}


def helps(fn: Any, whole: Loc, chain: Sequence[TracebackFrame], node: ast.expr | None) -> tuple[str, ...]:
    """Return the helps for a chain of helpers, of which the innermost branches on a value of a lane.

    The primitive `fn`, whose span is `whole`, calls the chain, outermost first, by the expression `node`.
    """
    names = _listed([frame.name for frame in chain if not frame.name.startswith("<")] or ["it"])
    choose = CHOOSE.format(names)
    first, inner = chain[0], chain[-1]
    # A function that is defined inside the batched one cannot be decorated: it is part of the primitive.
    nested = [frame for frame in chain if _contains(fn.__code__, frame.code)]
    func = node.func if isinstance(node, ast.Call) else None
    if nested and func is not None:
        if not isinstance(func, ast.Name) and (loop := _loop(func)) is not None:
            return (loop, choose)
        itself = ast.unparse(func) in (*nested[0].code.co_names, *nested[0].code.co_freevars)
        return (_move_out(nested[0], ast.unparse(func)), *(() if itself else (choose,)))
    # The helper is an argument of another function, such as `map` or `lax.cond`, which calls it in a trace.
    if func is None or not _means(fn, func, first):
        if func is not None and (loop := _loop(func)) is not None:
            return (f"{loop}; call {names} there by its name", choose)
        by_name = "in a `for` loop in place of `map`, in an `if` in place of `lax.cond`"
        return (f"call {names} by its name, {by_name}", choose)
    # A method of an object that is a local variable is not known while compiling, but that of a class is.
    local = _root(func) in fn.__code__.co_varnames
    if isinstance(func, ast.Attribute) and (local or isinstance(func.value, ast.Call)):
        called = first.code.co_qualname.rpartition("<locals>.")[2]
        arguments = ", ".join([ast.unparse(func.value), *(["..."] if isinstance(node, ast.Call) and node.args else [])])
        return (f"decorate {names} with `@pcbatch.inline`, and call it by its class: `{called}({arguments})`", choose)
    recursive = inner.name in (*inner.code.co_names, *inner.code.co_freevars)
    # A helper of another file, perhaps of a library, which the user cannot decorate.
    if len(chain) == 1 and first.loc.file != whole.file:
        name, wrapper = ast.unparse(func), "batch" if recursive else "inline"
        wrapped = f"wrap it at the top of this file: `{name.rpartition('.')[2]} = pcbatch.{wrapper}({name})`"
        return (wrapped,) if recursive else (wrapped, choose)  # JAX traces both arms, so a recursion would not end
    if recursive:
        return (f"decorate {names} with `@pcbatch.batch`, as it calls itself",)
    if first.name == LAMBDA:
        name = ast.unparse(func)
        return (f"wrap it where it is made: `{name} = pcbatch.inline(lambda ...)`", choose)
    return (f"decorate {names} with `@pcbatch.inline`, or with `@pcbatch.batch`", choose)


def _loop(func: ast.expr) -> str | None:
    """The help to write a call of `func`, such as `jax.lax.scan` or `jax.vmap(one)`, as a loop; None for others."""
    transform = func.func if isinstance(func, ast.Call) else func
    name = ast.unparse(transform)
    loop = LOOPS.get(name.rpartition(".")[2])
    if loop is None or name == "map":  # that of Python makes no array
        return None
    results = "" if "while" in loop else ", and keep the result of each step with `out = out.at[k].set(...)`"
    return f"write `{name}` as a loop in the batched function, `{loop}`{results if 'k in' in loop else ''}"


def _listed(names: Sequence[str]) -> str:
    marked = [name if name == "it" else f"`{name}`" for name in dict.fromkeys(names)]
    return " and ".join([", ".join(marked[:-1]), marked[-1]] if len(marked) > 1 else marked)


def _move_out(frame: TracebackFrame, called: str) -> str:
    if frame.name == LAMBDA and not called.isidentifier():
        return "write an `if` statement in place of this lambda"
    if called in (*frame.code.co_names, *frame.code.co_freevars):
        return f"move `{called}` out of the batched function, as a `def` with `@pcbatch.batch`; pass it what it reads"
    return f"move `{called}` out of the batched function, as a `def` with `@pcbatch.inline`; pass it what it reads"


def _contains(outer: CodeType, code: CodeType) -> bool:
    inner = [const for const in outer.co_consts if isinstance(const, CodeType)]
    return code in inner or any(_contains(const, code) for const in inner)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _means(fn: Any, func: ast.expr, frame: TracebackFrame) -> bool:
    """Whether a function expression of the primitive stands for the helper of this frame."""
    if isinstance(func, ast.Attribute):
        return func.attr == frame.name
    return isinstance(func, ast.Name) and (func.id == frame.name or _same_place(_code(fn, func.id), frame.code))


def _same_place(code: CodeType | None, ran: CodeType) -> bool:
    """Whether the code that ran is this code, or a copy of it that the front end has made."""
    return code is not None and all(
        getattr(code, name) == getattr(ran, name) for name in ("co_filename", "co_firstlineno", "co_name")
    )


def _code(fn: Any, name: str) -> CodeType | None:
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    value = cells[name].cell_contents if name in cells else fn.__globals__.get(name)
    while isinstance(value, functools.partial):
        value = value.func
    return value.__code__ if isinstance(value, FunctionType) else None
