"""Helps for operations that Python has and values of lanes lack, by the expression that needs one and what it calls.

re.match("[a-c]+", t)        called before the batched function, for each example
pairs = zip(xs, xs[1:])      a list of the lane: `list(zip(xs, xs[1:]))`
sorted(jobs)                 a key: `key=lambda x: (x.cost, x.name)`
"""

from __future__ import annotations

import ast
import itertools
import random
import re
from typing import Any

import numpy as np

from pcbatch.diagnostics.impure_calls import key_helps
from pcbatch.diagnostics.lane_words import readable
from pcbatch.lowering.diagnose.resolve_names import MISSING, Names, held, meaning

OUTSIDE = (
    "call `{}` before the batched function, for each example, and pass what it gives as an argument: texts "
    "and lists by `pcbatch.ragged`"
)
WRITTEN = "or write what it computes as statements: loops, conditions, operators and functions of `math` and `jnp`"
OF_TEXTS = (
    "or ask the text itself: `part in text`, `text.find(part)`, `text.replace(a, b)`, `text.split(c)`, `for c in text`"
)
LISTED = "make a list of it: `{}`"
ITERATED = "where several loops or calls take elements, one after the other: `iter({})`"
BEFORE = "compare each element with the one before it, in a loop: `if k == 0 or xs[k] != xs[k - 1]`, for `xs = {}`"
EVEN = "pass the elements as an array, `jnp.array([...])`, which has one length for all lanes"
NESTED = "or write the loops out, one inside the other"
SET_KEY = "take the elements in their order in place of the set: `tuple(sorted(s))` is a key, equal for equal sets"
KEY = "use a number as the key, or a text, such as `','.join(texts)`, or a tuple of them, such as `tuple(xs)`"
ARRAY = "pass the elements as an array, which has one length for all lanes: lists of lanes are no arrays"
OF_LISTS = {
    "mean": "statistics.mean",
    "median": "statistics.median",
    "std": "statistics.pstdev",
    "var": "statistics.pvariance",
    "prod": "math.prod",
    "sort": "sorted",
    "max": "max",
    "min": "min",
    "sum": "sum",
}
MET = ("is not a valid JAX array type", "supported seed types", "supporting the buffer API", "Clip received a complex")
UNHASHABLE = re.compile(r"unhashable type: (a |')(set|frozenset|str|tuple|deque|text|list|dict)")
LIBRARIES = ("numpy", "jax", "jaxlib", "pcbatch")
ORDER = re.compile(r"'[<>]=?' not supported between instances of '(\w+)' and '\1'")
CONVERSIONS = ("int", "float", "complex", "range", "bool", "len", "round", "slice", "bytes")
LAZY = ("zip", "map", "filter", "enumerate", "reversed", "iter")
COMBINED = ("permutations", "combinations", "combinations_with_replacement")
GENERATORS = (random.Random, random.SystemRandom, np.random.default_rng, np.random.RandomState)


def of_values(error: Exception, node: ast.expr | None, names: Names) -> tuple[str, ...]:
    """Return the helps for an error of Python's own code that met a value of a lane; none if it met no such value."""
    text, called = str(error), of_call(node, names) if isinstance(node, ast.Call) else ()
    if (order := ORDER.search(text)) is not None:
        return _order_helps(names.get(order[1]), order[1])
    if (key := UNHASHABLE.search(readable(text))) is not None and not called:
        return (SET_KEY,) if key[2].endswith("set") else (KEY,)
    if "attribute name must be string" in text and isinstance(node, ast.Call) and len(node.args) > 1:
        return (f"choose with `if`, an attribute on each path: `{ast.unparse(node.args[0])}.NAME`",)
    if readable(text) == text and not any(part in text for part in MET):
        return ()
    if isinstance(error, AttributeError) and not any(
        hasattr(kind, str(error.name)) for kind in (int, float, str, list)
    ):
        return ()
    if "doesn't apply to" in text and (method := re.search(r"descriptor '(\w+)'", text)) is not None:
        return (f"write `lambda x: x.{method[1]}()` in place of `str.{method[1]}`",)
    if "Clip received a complex value" in text and isinstance(node, ast.Call) and len(node.args) == 3:
        x, low, high = map(ast.unparse, node.args)
        return (f"write `jnp.minimum(jnp.maximum({x}, {low}), {high})`, which orders complex numbers as NumPy does",)
    return called or _of_numpy(node, names) or (WRITTEN.removeprefix("or "),)


def _of_numpy(node: ast.expr | None, names: Names) -> tuple[str, ...]:
    """The helps for a function of NumPy or JAX that is given a list of the lane."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ()
    if str(getattr(meaning(node.func, names), "__module__", "")).partition(".")[0] not in LIBRARIES:
        return ()
    shown, name = ", ".join(map(ast.unparse, node.args[:1])), OF_LISTS.get(node.func.attr)
    return (*((f"write `{name}({shown})`, which takes lists",) if name else ()), ARRAY)


def of_key(node: ast.expr | None) -> tuple[str, ...]:
    """Return the helps for `sorted` with a key that branches, which is computed for all elements at once."""
    calls = [] if node is None else [part for part in ast.walk(node) if isinstance(part, ast.Call)]
    for call in calls:
        key = next((keyword.value for keyword in call.keywords if keyword.arg == "key"), None)
        if key is not None and ast.unparse(call.func) == "sorted" and len(call.keywords) == 1:
            name = ast.unparse(key.body) if isinstance(key, ast.Lambda) else f"{ast.unparse(key)}(x)"
            variable = key.args.args[0].arg if isinstance(key, ast.Lambda) else "x"
            xs = ast.unparse(call.args[0])
            order = f"sorted(range(len({xs})), key=lambda k: keys[k])"
            return (
                f"compute the keys in a statement before, `keys = [{name} for {variable} in {xs}]`, and sort the "
                f"places: `[{xs}[k] for k in {order}]`",
            )
    return ()


def of_lists(node: ast.expr | None, names: Names) -> tuple[str, ...]:
    """Return the helps for a list of the lane that Python itself goes over; none for what is no call of a library."""
    if isinstance(node, ast.GeneratorExp):
        return _listed(ast.unparse(ast.ListComp(node.elt, node.generators)))
    return of_call(node, names) if isinstance(node, ast.Call) and ast.unparse(node.func) not in CONVERSIONS else ()


def _listed(elements: str) -> tuple[str, ...]:
    return LISTED.format(elements), ITERATED.format(elements)


def of_call(call: ast.Call, names: Names) -> tuple[str, ...]:
    """Return the helps for a call of a library that computes with Python's own values; none for other calls."""
    target, name = meaning(call.func, names), ast.unparse(call.func)
    if name.startswith("hashlib."):
        name += "(...).hexdigest()"
    if any(target is generator for generator in GENERATORS):
        return key_helps("")
    package = str(getattr(target, "__module__", "")).partition(".")[0]
    bound = target is MISSING and isinstance(call.func, ast.Attribute) and _foreign(held(call.func.value, names))
    if package in LIBRARIES or (target is MISSING and not bound):
        return ()
    if "cmp_to_key" in ast.unparse(call):
        return ("sort by a key, a number or a tuple of numbers that has the order: `key=lambda x: ...`",)
    if any(isinstance(arg, ast.Starred) for arg in call.args):
        return _starred_helps(call)
    if target is itertools.groupby and call.args:
        return (BEFORE.format(ast.unparse(call.args[0])),)
    if target is itertools.cycle and call.args:
        return (f"use an index: `{ast.unparse(call.args[0])}[k % len({ast.unparse(call.args[0])})]`",)
    if target in [getattr(itertools, each) for each in COMBINED]:
        return EVEN, NESTED
    if name == "iter":
        again = "`for x in xs[k:]` in place of a loop over the iterator"
        return (f"go over it with an index: `k = 0`, then `xs[k]` and `k += 1` in place of `next`, {again}",)
    if name in LAZY:
        return _listed(f"list({ast.unparse(call)})")
    return OUTSIDE.format(name), OF_TEXTS if package == "re" else WRITTEN


def _foreign(value: Any) -> bool:
    """Whether a value is an object of a library, such as a compiled regular expression."""
    return value is not MISSING and type(value).__module__.partition(".")[0] not in ("builtins", *LIBRARIES)


def _starred_helps(call: ast.Call) -> tuple[str, ...]:
    stars = [arg.value if isinstance(arg, ast.Starred) else arg for arg in call.args]
    inner = ast.unparse(stars[0])
    if ast.unparse(call.func) == "zip":
        return (f"take the parts one by one: `[row[0] for row in {inner}]`, `[row[1] for row in {inner}]`",)
    whole: list[ast.expr] = stars if len(stars) == 1 else [ast.List(call.args, ast.Load())]
    plain = ast.unparse(ast.Call(call.func, whole, call.keywords))
    one_by_one = f"{ast.unparse(call.func)}({inner}[0], {inner}[1])"
    return (
        f"pass the list itself: `{plain}`; a function of yours has a parameter `xs` in place of `*xs` then",
        f"or, where the function has a parameter for each, give them one by one: `{one_by_one}`",
    )


def _order_helps(cls: Any, name: str) -> tuple[str, ...]:
    """The helps for an order of objects of a class that has a method for it."""
    method = next((m for m in ("__lt__", "__gt__") if m in vars(cls)), None) if isinstance(cls, type) else None
    return () if method is None else (f"give the order of `{name}.{method}` by a key: `key=lambda x: ...`",)
