"""What to write in place of an expression that asks a value of a lane to be a constant.

The expression is read again from its source: `math.floor(x)` needs other words than `xs[:n]` or `xs[i]` of a list,
though JAX says the same of all.
"""

from __future__ import annotations

import ast
import math
import re

import jax
import jax.numpy as jnp

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.lowering.diagnose.traceback_spans import source

SHAPE = "make it a constant: pass it as one of `static_argnames`, or use the largest size and a mask"
UNROLL = "or, if the index is that of a short loop, make it known: `for i in pcbatch.unroll(range(...))`"
ARRAY = "use the function of `jnp` in place of that of NumPy or `math`, for example `jnp.sqrt(x)`"
NUMBER = "or keep the array: `x.astype(int)` for `int(x)`, `x.astype(float)` for `float(x)`"
RAISING = frozenset("sqrt isqrt log log2 log10 log1p acos asin acosh atanh exp expm1 cosh sinh pow fmod".split())
SIZED = frozenset("where nonzero argwhere flatnonzero unique union1d intersect1d setdiff1d bincount repeat".split())
SHAPED = frozenset("zeros ones empty full arange linspace eye".split())
CONVERSIONS = frozenset({"int", "float", "complex", "range"})
TEXTS = frozenset({"bin", "hex", "oct", "chr"})
ITEMS = {"item": "the array itself is the number", "tolist": "the array itself holds the numbers"}
INTEGERS = frozenset({"floor", "ceil", "trunc"})
OTHER_MATH = {
    "isqrt": "jnp.floor(jnp.sqrt({})).astype(int)",
    "erf": "jax.scipy.special.erf({})",
    "erfc": "jax.scipy.special.erfc({})",
    "factorial": "jax.scipy.special.factorial({})",
    "gamma": "jax.scipy.special.gamma({})",
    "lgamma": "jax.scipy.special.gammaln({})",
    "fsum": "jnp.sum(jnp.asarray({}))",
    "prod": "jnp.prod(jnp.asarray({}))",
    "dist": "jnp.linalg.norm(jnp.subtract({}))",
}
UNLIKE = frozenset({"remainder", "comb", "perm", "sumprod", "nextafter", "ulp", "frexp", "modf", "fma"})


def expression(loc: Loc | None) -> ast.expr | None:
    """The expression in a span of the source; None if the span holds something else."""
    try:
        return None if loc is None else ast.parse(f"({source(loc)}\n)", mode="eval").body
    except SyntaxError:
        return None


def constant_helps(error: Exception, node: ast.expr | None) -> tuple[str, ...]:
    """The helps for a value of a lane where `error` says that a constant is needed."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=name), args=args):
            return (math_help(name, ", ".join(map(ast.unparse, args))),)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr=name), args=args):
            return _numpy_helps(name, args)
        case ast.Call(func=ast.Attribute(value=value, attr=("item" | "tolist") as name), args=[]):
            return (f"write `{ast.unparse(value)}`: {ITEMS[name]}",)
        case ast.Call(func=ast.Attribute(attr=name), args=args) if name in SIZED:
            return _sized_helps(name, args)
        case ast.Call(func=ast.Name(id=name)) if name in TEXTS:
            return ("compute with the number itself, for example `(n >> k) & 1` for its bits",)
        case ast.Subscript(value=value, slice=ast.Slice()) if _is_list(error):
            return (f"make it an array: `jnp.asarray({ast.unparse(value)})`, with `.at[i].set(v)` to change it", UNROLL)
        case ast.Subscript(value=value, slice=ast.Slice() as part):
            return _slice_helps(ast.unparse(value), part)
        case ast.Subscript(value=value, slice=mask) if isinstance(error, jax.errors.NonConcreteBooleanIndexError):
            return (_mask_help(ast.unparse(value), ast.unparse(mask)),)
        case ast.Subscript(value=ast.Constant(value=str() | bytes())):
            return ("characters are no values of lanes: keep the number, and look it up outside",)
        case ast.Subscript(value=ast.Dict()):
            return ("a dict finds nothing by a value of a lane: use `match`, or an array and its index",)
        case ast.Subscript(value=value, slice=index):
            return _index_helps(error, ast.unparse(value), ast.unparse(index))
        case ast.Set() | ast.SetComp() | ast.Dict() | ast.DictComp():
            return ("values of lanes can be no keys: use a tuple or an array, and compare its elements",)
        case ast.BinOp(op=ast.Mult()):
            return ("a list is as long in all lanes: use an array of the greatest size, such as `jnp.zeros(N)`",)
    return (_general(error),)


def is_builtin_call(node: ast.expr | None) -> bool:
    """Is this a call of a builtin that lanes have, but undecorated helpers have not?"""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CONVERSIONS


def math_help(name: str, args: str) -> str:
    """What to write for `math.name(args)`."""
    if name in OTHER_MATH:
        found = OTHER_MATH[name].format(args)
    elif name in INTEGERS:
        found = f"jnp.{name}({args}).astype(int)"
    elif hasattr(jnp, name) and name not in UNLIKE and callable(getattr(math, name, None)):
        found = f"jnp.{name}({args})"
    else:
        return "compute it with functions of `jnp` or `jax.scipy.special`"
    return f"write `{found}`" + (", which gives NaN or infinity where `math` raises" if name in RAISING else "")


def _numpy_helps(name: str, args: list[ast.expr]) -> tuple[str, ...]:
    if name in SIZED:
        return _sized_helps(name, args)
    if name in SHAPED:
        return (SHAPE,)
    if not hasattr(jnp, name):
        return (ARRAY,)
    return (f"write `jnp.{name}({', '.join(map(ast.unparse, args))})`: NumPy cannot compute with values of lanes",)


def _sized_helps(name: str, args: list[ast.expr]) -> tuple[str, ...]:
    size = {"bincount": "length", "repeat": "total_repeat_length"}.get(name, "size")
    call = f"jnp.{name}({', '.join([*map(ast.unparse, args), f'{size}=N'])})"
    return (f"say how long the result is: `{call}`, with `N` known while compiling",)


def _slice_helps(array: str, part: ast.Slice) -> tuple[str, ...]:
    low, high = (None if end is None else ast.unparse(end) for end in (part.lower, part.upper))
    tests = [f"({low} <= k)"] if low is not None else []
    tests += [f"(k < {high})"] if high is not None else []
    return (
        f"take a slice of constant size: `jax.lax.dynamic_slice_in_dim({array}, {low or 0}, size)`",
        f"or keep the shape and mask what is outside, with `k = jnp.arange(len({array}))`: "
        f"`jnp.where({' & '.join(tests) or 'mask'}, {array}, 0)`",
    )


def _mask_help(array: str, mask: str) -> str:
    return f"keep the shape: `jnp.where({mask}, {array}, 0)` in place of `{array}[{mask}]`"


def _index_helps(error: Exception, table: str, index: str) -> tuple[str, ...]:
    if _is_list(error):
        return (f"make it an array: `jnp.asarray({table})[{index}]`", UNROLL)
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return (f"make it an array: `jnp.asarray({table})[{index}]`",)
    return (_general(error),)


def _is_list(error: Exception) -> bool:
    """Does the error come of an index, as a list or tuple wants it?"""
    return isinstance(error, jax.errors.TracerIntegerConversionError)


def _general(error: Exception) -> str:
    text = str(error)
    match error:
        case jax.errors.NonConcreteBooleanIndexError():
            return _mask_help("x", "mask")
        case jax.errors.TracerArrayConversionError():
            return ARRAY
        case _ if "the `float` function" in text or "the `int` function" in text:
            return NUMBER
        case _:
            return SHAPE


def readable(text: str) -> str:
    """What Python or JAX says, without their names for values of lanes."""
    return re.sub(r"'?(DynamicJaxprTracer|JitTracer)'?( object)?(?!\()", "a value of the lane", text)
