"""Fix-its for calls of `math` or `cmath` with values of a lane: integers stay integers, and exact.

Where `jnp` has no function with the same results, the help is a definition to put above the batched function. The
suite follows every help and compares the results with those of `math`.
"""

from __future__ import annotations

import ast
import cmath
import math
from collections.abc import Sequence

import jax.numpy as jnp

from pcbatch.lowering.diagnose.resolve_names import MISSING, Names, held, is_float, meaning, spelled

GENERAL = "compute it with functions of `jnp` or `jax.scipy.special`"
RAISING = frozenset(  # for some arguments
    "sqrt log log2 log10 log1p acos asin acosh atanh exp exp2 expm1 cosh sinh pow fmod sin cos tan gamma lgamma ldexp "
    "remainder".split()
)
WHOLE = frozenset({"floor", "ceil", "trunc"})  # integers in Python, floats in `jnp`
SAME = frozenset(  # in `jnp`, by this name
    "acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh degrees exp exp2 expm1 fabs frexp isfinite isinf "
    "isnan ldexp log10 log1p log2 radians sin sinh sqrt tan tanh".split()
)
TEXTS = {
    "erf": "jax.scipy.special.erf({0})",
    "erfc": "jax.scipy.special.erfc({0})",
    "gamma": "jax.scipy.special.gamma({0})",
    "lgamma": "jax.scipy.special.gammaln({0})",
    "dist": "jnp.linalg.norm(jnp.asarray({0}) - jnp.asarray({1}))",
    "sumprod": "jnp.sum(jnp.asarray({0}) * jnp.asarray({1}))",
    "modf": "(jnp.copysign(jnp.where(jnp.isinf({0}), 0.0, {f0} - jnp.trunc({0})), {0}), jnp.trunc({f0}))",
    "pow": "jnp.float_power({0}, {1})",
}
ROUNDED = {  # with what differs
    "fsum": ("jnp.sum(jnp.asarray({0}))", "which rounds every addition"),
    "fma": ("{0} * {1} + {2}", "which rounds twice"),
    "nextafter": ("jnp.nextafter({0}, {1})", "which steps by the precision of the lane's dtype"),
    "ulp": ("jnp.spacing(jnp.abs({0}))", "which is that of the lane's dtype"),
}
DEFINITIONS = {
    "isqrt": """\
def {name}(n):
    if n < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    root = n
    while root > 0 and root > n // root:
        root = n // root + (root - n // root) // 2
    return root""",
    "factorial": """\
def {name}(n):
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    product = 1
    for k in range(2, n + 1):
        product *= k
    return product""",
    "comb": """\
def {name}(n, k):
    if n < 0 or k < 0:
        raise ValueError("n and k must be non-negative integers")
    ways = 1 if k <= n else 0
    for j in range(1, min(k, n - k) + 1):
        common = jnp.gcd(ways, j)
        ways = ways // common * ((n - j + 1) // (j // common))
    return ways""",
    "perm": """\
def {name}(n, k):
    if n < 0 or k < 0:
        raise ValueError("n and k must be non-negative integers")
    ways = 1
    for j in range(n - k + 1, n + 1):
        ways *= j
    return ways""",
    "remainder": """\
def {name}(x, y):
    x, y = float(x), abs(float(y))
    part = jnp.fmod(abs(x), y)
    if part > y - part:
        part = part - y
    elif part == y - part:
        part = part - 2.0 * jnp.fmod(0.5 * (abs(x) - part), y)
    return jnp.copysign(1.0, x) * part""",
    "modular power": """\
def {name}(base, exp, mod):
    if exp < 0:
        raise ValueError("no inverse is computed")
    result, base = 1 % mod, base % mod
    while exp > 0:
        if exp % 2 == 1:
            result = result * base % mod
        base, exp = base * base % mod, exp // 2
    return result""",
    "isclose": """\
def {name}(a, b, rel_tol=1e-09, abs_tol=0.0):
    a, b = float(a), float(b)
    if a == b:
        return True
    if jnp.isinf(a) or jnp.isinf(b):
        return False
    far = abs(a - b)
    return far <= rel_tol * abs(a) or far <= rel_tol * abs(b) or far <= abs_tol""",
}
EXACT = {  # what to say of a definition
    **dict.fromkeys(("factorial", "comb", "perm"), ", exact as long as it fits the lane's integers"),
    "modular power": ", exact as long as the square of the modulus fits the lane's integers",
}
COMPLEX = {
    "phase": "jnp.angle({0})",
    "polar": "(jnp.abs({0}), jnp.angle({0}))",
    "rect": "{0} * jnp.exp(1j * {1})",
}


def math_name(func: ast.expr, names: Names) -> str | None:
    """Return the name of the function of `math` or `cmath` that is called, `sqrt` or `cmath.sqrt`; None for others."""
    function = meaning(func, names)
    for module, prefix in ((math, ""), (cmath, "cmath.")):
        name = getattr(function, "__name__", "")
        if function is not MISSING and getattr(module, name, None) is function:
            return prefix + name
    # Without names, at a primitive whose frame is not known, `math.` in the source is taken at its word.
    if not names and isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "math":
        return func.attr
    return None


def has_branches(name: str) -> bool:
    """Return whether the help for this function is a definition, whose branches need a decorated helper."""
    return name in DEFINITIONS


def math_helps(name: str, call: ast.Call, names: Names) -> tuple[str, ...]:
    """Return the helps for a call of the function of this name, which `math_name` gave or which is "modular power"."""
    if any(isinstance(arg, ast.Starred) for arg in call.args) and name not in ("gcd", "lcm"):
        return ("write the arguments out, without `*`",)
    if name in DEFINITIONS:
        return (_definition(name, call, names),)
    note = "which gives NaN or infinity where `math` raises" if name in RAISING else ""
    if name in ROUNDED:
        text, note = ROUNDED[name]
        expression: str | None = _filled(text, call.args, names)
    else:
        expression = _expression(name, call, names)
    if expression is None:
        return (GENERAL,)
    return (spelled(f"write `{expression}`" + (f", {note}" if note else ""), names),)


def _expression(name: str, call: ast.Call, names: Names) -> str | None:
    args = [ast.unparse(arg) for arg in call.args]
    match name, args:
        case ("log", [x, base]):
            return f"jnp.log({x}) / jnp.log({base})"
        case ("log", [x]):
            return f"jnp.log({x})"
        case ("gcd" | "lcm", [_, *_]):
            return _folded(name, call.args, "0" if name == "gcd" else "1")
        case ("fmod", [x, y]):
            known = any(is_float(arg, names) for arg in call.args)
            return f"jnp.fmod({x}, {y})" + ("" if known else ".astype(float)")  # exact of ints, too
        case ("hypot", [x]):
            return f"abs({x}) * 1.0"
        case ("hypot", [x, y, *more]):
            norm = f"jnp.hypot({x}, {y})"  # which takes two arguments
            for z in more:
                norm = f"jnp.hypot({norm}, {z})"
            return norm
    if name in WHOLE:
        return f"jnp.{name}({', '.join(args)}).astype(int)"
    if name in SAME and hasattr(jnp, name):
        return f"jnp.{name}({', '.join(args)})"
    if name in TEXTS:
        return _filled(TEXTS[name], call.args, names)
    if name.startswith("cmath."):
        return _complex(name.removeprefix("cmath."), args)
    return None


def _complex(name: str, args: Sequence[str]) -> str | None:
    if name in COMPLEX:
        return COMPLEX[name].format(*args)
    if name == "log" and len(args) == 2:
        return f"jnp.log(jnp.asarray({args[0]}, complex)) / jnp.log(jnp.asarray({args[1]}, complex))"
    if len(args) != 1 or name == "isclose" or not hasattr(jnp, name):
        return None
    return f"jnp.{name}(jnp.asarray({args[0]}, complex))"


def _folded(name: str, args: Sequence[ast.expr], first: str) -> str:
    """A call of any number of arguments as calls of two; `first` is the neutral element."""
    if any(isinstance(arg, ast.Starred) for arg in args):
        return f"functools.reduce(jnp.{name}, [{', '.join(map(ast.unparse, args))}], {first})"
    texts = [ast.unparse(arg) for arg in args]
    folded = texts[0] if len(texts) > 1 else f"jnp.{name}({texts[0]}, {first})"
    for text in texts[1:]:
        folded = f"jnp.{name}({folded}, {text})"
    return folded


def _filled(template: str, args: Sequence[ast.expr], names: Names) -> str | None:
    """A template with `{0}` for an argument and `{f0}` for it as a float; None if it needs another number of them."""
    texts = [ast.unparse(_listed(arg)) for arg in args]
    floats = {
        f"f{k}": text if is_float(arg, names) else f"jnp.asarray({text}, float)"
        for k, (text, arg) in enumerate(zip(texts, args, strict=True))
    }
    # Parentheses only where the template multiplies the argument.
    nested = [
        f"({text})"
        if isinstance(arg, ast.BinOp | ast.UnaryOp | ast.IfExp | ast.Compare | ast.BoolOp)
        and any(sign in template for sign in (f"{{{k}}} *", f"* {{{k}}}"))
        else text
        for k, (text, arg) in enumerate(zip(texts, args, strict=True))
    ]
    try:
        return template.format(*nested, **floats)
    except (IndexError, KeyError):
        return None


def _listed(node: ast.expr) -> ast.expr:
    """A generator as a list, of which `jnp.asarray` makes an array."""
    return ast.ListComp(elt=node.elt, generators=node.generators) if isinstance(node, ast.GeneratorExp) else node


def _definition(name: str, call: ast.Call, names: Names) -> str:
    """The help that defines the function and calls it, by a name that is free."""
    to_write = call
    if name == "perm" and (len(call.args) == 1 or _is_none(call.args[-1])):
        name, to_write = "factorial", ast.Call(func=call.func, args=call.args[:1], keywords=[])
    name = name.replace(" ", "_")
    own = held(ast.Name(id=name), names)
    used = name if own is MISSING or own is getattr(math, name, None) else f"{name}_"
    # After `from math import isqrt as root` the definition takes that name, so that the call may stay as it is.
    if isinstance(call.func, ast.Name) and to_write is call and call.func.id != "pow":
        used = call.func.id
    arguments = [ast.unparse(arg) for arg in to_write.args]
    arguments += [ast.unparse(ast.keyword(arg=k.arg, value=k.value)) for k in to_write.keywords]
    text = f"write `{used}({', '.join(arguments)})`"
    text += EXACT.get(name.replace("_", " "), "")
    body = DEFINITIONS[name.replace("_", " ")].format(name=used)
    return spelled(f"{text}, and put above the batched function:\n@pcbatch.inline\n{body}", names)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
