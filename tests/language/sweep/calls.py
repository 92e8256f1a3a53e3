"""Calls of every public function of NumPy and of parts of the standard library on values of a lane, as expressions.

The names come from the modules themselves, so that a new release of NumPy brings its new functions along.
"""

from __future__ import annotations

import builtins
import cmath
import collections
import copy
import functools
import itertools
import math
import operator
import re
import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np

# Two examples of each kind. What Python gives for each is what a lane must give.
EXAMPLES: tuple[dict[str, Any], ...] = (
    {
        "n": 3,
        "x": 0.75,
        "c": True,
        "xs": np.array([0.25, -1.5, 2.0]),
        "ns": np.array([2, 1, 1]),
        "m": np.array([[2.0, 0.5, 0.25], [0.5, 3.0, -0.5], [0.25, -0.5, 1.5]]),
        "cs": np.array([True, False, True]),
    },
    {
        "n": 2,
        "x": -1.25,
        "c": False,
        "xs": np.array([1.5, 1.0, -0.75]),
        "ns": np.array([1, 2, 1]),
        "m": np.array([[1.0, -0.25, 0.5], [-0.25, 2.5, 0.0], [0.5, 0.0, 3.0]]),
        "cs": np.array([False, True, False]),
    },
)
OPERANDS = EXAMPLES[0]
NAMES: dict[str, Any] = {
    "np": np,
    "math": math,
    "cmath": cmath,
    "operator": operator,
    "functools": functools,
    "itertools": itertools,
    "statistics": statistics,
    "copy": copy,
    "collections": collections,
}

# What touches files, the terminal or the settings of the process, or asks what the value of a lane is not asked here.
OUTSIDE = frozenset(
    """
    breakpoint compile copyright credits delattr dir eval exec exit globals help input license locals memoryview open
    print quit setattr vars classmethod property staticmethod super
    fromfile fromregex genfromtxt get_include info load loadtxt lookfor memmap open_memmap save savetxt savez
    savez_compressed seterr seterrcall setbufsize set_numeric_ops set_printoptions set_string_function show_config
    show_runtime source test tofile dump dumps errstate printoptions deprecate deprecate_with_doc
    add_newdoc add_docstring disp nested_iters safe_eval asarray_chkfinite
    """.split()
)
# Random, uninitialised or endless by nature; names of memory.
UNSTEADY = frozenset(
    "empty empty_like argpartition byteswap ctypes data base id hash count cycle object device".split()
)
# Powers of negative numbers, which Python finds complex, and a lane NaN.
COMPLEX = re.compile(r"\bi?pow\(x, x|\((x|-2\.5) \*\* |^(x|-2\.5) \*\* x|pow\(-2\.5, x")
# How wide the types of JAX are is not what Python says.
WIDTHS = frozenset(
    "itemsize nbytes strides dtype spacing nextafter finfo iinfo getlimits ulp view min_scalar_type".split()
)

PATTERNS = (
    "{f}({v})",
    "{f}({v}, {v})",
    "{f}({v}, 1)",
    "{f}(1, {v})",
    "{f}([{v}, {v}])",
    "{f}(({v}, {v}), 0)",
    "{f}({v}, {v}, {v})",
    "{f}({v}, 0, 1)",
    "{f}(0, 1, {v})",
    "{f}([{v}], [1.0])",
    "{f}([1.0, 2.0, 3.0], {v})",
    "{f}(np.array([1.0, 2.0, 3.0]), {v})",
    "{f}({v}, np.array([1.0, 2.0, 3.0]))",
    "{f}({v}, [1, 2, 0])",
    "{f}({v}, axis=0)",
    "{f}('ij,ij->i', {v}, {v})",
)
HIGHER = (
    "{f}(operator.add, [{v}, {v}])",
    "{f}(operator.neg, [{v}, {v}])",
    "{f}(lambda t: t, [{v}, 1])",
    "{f}([{v}, {v}], [1, 0])",
    "{f}([{v}, 2.0, 1.0])",
    "{f}(operator.add, {v})",
    "{f}({v}, 2)",
)
UFUNC_METHODS = ("reduce", "accumulate", "outer", "reduceat", "at")


def public(module: Any) -> list[str]:
    """The public names of a module or class that are not kept out of the sweep."""
    listed = getattr(module, "__all__", None) or dir(module)
    names = sorted({*listed, *dir(module)} if module is np else set(listed))
    return [name for name in names if not name.startswith("_") and name not in OUTSIDE | UNSTEADY]


def is_called(value: Any) -> bool:
    """Tell functions and classes from exceptions, scalar types and modules."""
    return callable(value) and not (isinstance(value, type) and issubclass(value, BaseException | np.generic))


def numpy_functions() -> Iterator[str]:
    """The names of NumPy's functions."""
    for prefix, module in (("np", np), ("np.linalg", np.linalg), ("np.fft", np.fft)):
        for name in public(module):
            found = getattr(module, name, None)
            if is_called(found):
                yield f"{prefix}.{name}"


def _calls(functions: Iterator[str] | list[str], patterns: tuple[str, ...], operands: str) -> Iterator[str]:
    for f in functions:
        for v in operands.split():
            for pattern in patterns:
                yield pattern.format(f=f, v=v)


def numpy_calls() -> Iterator[str]:
    """NumPy's functions, those of its parts for linear algebra and Fourier transforms, and its types."""
    yield from _calls(numpy_functions(), PATTERNS, "n x c xs ns m cs")
    scalars = ("float32", "float64", "int32", "int64", "bool_", "complex64", "uint8")
    yield from _calls([f"np.{name}" for name in scalars], ("{f}({v})", "{f}(2) + {v}", "{v} * {f}(2)", "{f}(2) < {v}"),
                      "n x c xs ns m cs")  # fmt: skip


def ufunc_calls() -> Iterator[str]:
    """The methods of ufuncs."""
    names = [name for name in public(np) if isinstance(getattr(np, name), np.ufunc)]
    for method in UFUNC_METHODS:
        patterns = ("{f}({v})", "{f}({v}, {v})", "{f}({v}, [0, 1])", "{f}(np.array([1.0, 2.0]), {v})")
        yield from _calls([f"np.{name}.{method}" for name in names], patterns, "n x xs ns m cs")


def math_calls() -> Iterator[str]:
    """The functions of `math` and `cmath`."""
    for module in ("math", "cmath"):
        names = [f"{module}.{name}" for name in public(NAMES[module]) if is_called(getattr(NAMES[module], name))]
        patterns = ("{f}({v})", "{f}({v}, {v})", "{f}({v}, 2)", "{f}(2, {v})", "{f}([{v}, {v}])",
                    "{f}([{v}, 1], [{v}, 2])", "{f}({v}, 1, {v})", "{f}({v}, {v}, {v})", "{f}(*[{v}, 4])",
                    "{f}({v}, 2, rel_tol=0.5)", "{f}(({v}, 2.0), (1.0, {v}))", "{f}(t for t in ({v}, 2, {v}))",
                    "list(map({f}, [{v}, 2]))", "{f}({v} * 1.5)", "{f}({v} + 4)", "{f}(-{v})", "{f}({v} * 100.0)",
                    "{f}({v} - {v})", "{f}(0.1 * {v}, 3)")  # fmt: skip
        yield from _calls(names, patterns, "n x c xs ns")


def number_calls() -> Iterator[str]:
    """What programs do with numbers, and with tuples of them."""
    for a in ("n", "x", "c", "7", "-2.5"):
        for b in ("n", "x", "c", "3"):
            for op in "+ - * / // % ** << >> & | ^ == != < <= > >=".split():
                yield f"{a} {op} {b}"
            yield from (f"divmod({a}, {b})", f"pow({a}, {b})", f"({a}, {b}) < ({b}, {a})", f"({a}, {b}) == ({b}, {a})",
                        f"({a}, 1) <= ({a}, {b})", f"[{a}, {b}] != [{b}, {a}]", f"sorted(({a}, {b}, 1))",
                        f"sorted([({a}, 1), ({b}, 2)], reverse=True)", f"sorted([{a}, {b}], key=lambda t: -t)",
                        f"max({a}, {b}, key=abs)", f"min(({a}, {b}), ({b}, {a}))", f"{a} in {{{b}, 2}}",
                        f"{a} not in (1, {b})", f"({a}, {b}, 2).count({b})", f"[{a}, {b}].index({b})",
                        f"sum(({a}, {b}, {a}))", f"round({a}, {b})", f"math.isclose({a}, {b})",
                        f"complex({a}, {b})", f"statistics.mean([{a}, {b}])", f"statistics.median(({a}, {b}, 1))",
                        f"functools.reduce(lambda s, t: s * t, [{a}, {b}, 2])",
                        f"operator.mul({a}, {b})", f"math.gcd({a}, {b}, 12)", f"pow({a}, {b}, 7)")  # fmt: skip
        for text in ("round({a})", "round({a}, 1)", "round({a}, 0)", "round({a} * 1234, -2)", "round({a} * 1.2345, 2)",
                     "abs({a})", "~{a}", "-{a}", "int({a})", "float({a})", "bool({a})", "not {a}", "{a}.real",
                     "{a}.imag", "{a}.numerator", "{a}.denominator", "{a}.conjugate()", "{a}.is_integer()",
                     "{a}.bit_length()", "{a}.bit_count()", "pow({a}, -1, 11)", "pow(3, {a}, 5)", "pow({a}, 5, -7)",
                     "isinstance({a}, (int, float))", "type({a}) == int", "isinstance({a}, bool)",
                     "{a} // 1", "{a} % 1", "1 << int({a}) % 5", "{a} ** 2"):  # fmt: skip
            yield text.format(a=a if not a.startswith("-") and not a.isdigit() else f"({a})")


def method_calls() -> Iterator[str]:
    """Methods and attributes of numbers and arrays."""
    for v, value in OPERANDS.items():
        for name in public(type(value)):
            if not callable(getattr(type(value), name, None)):
                yield f"{v}.{name}"
                continue
            for args in ("", v, "0", "1", "2", "'little'", "1, 'little'", "float", "'float64'", "0, 1", "[0, 1]", "-1",
                         "(0, 1)", "np.array([2, 1, 0])", "axis=0"):  # fmt: skip
                yield f"{v}.{name}({args})"
    for v in ("xs", "m"):
        yield from (f"{v}.flat[1]", f"{v}.T", f"{v}[...]", f"{v}[None]", f"{v}[::-1]", f"{v}[[0, 1]]", f"{v}[ns]",
                    f"{v}[n - 2]", f"{v}[cs]", f"{v}[-1]", f"{v}[5:]")  # fmt: skip


def builtin_calls() -> Iterator[str]:
    """Python's builtins."""
    names = [name for name in public(builtins) if is_called(getattr(builtins, name))]
    yield from _calls(names, ("{f}({v})", "{f}({v}, 2)", "{f}(2, {v})", "{f}({v}, {v})", "{f}([{v}, {v}])",
                              "list({f}([{v}, {v}]))", "list({f}({v}))", "list({f}({v}, {v}))",
                              "list({f}(operator.neg, [{v}, 1]))", "list({f}(None, [{v}, 1]))",
                              "{f}([{v}, 1], key=abs)", "{f}([{v}, {v}], {v})"), "n x c xs ns m cs")  # fmt: skip


def library_calls() -> Iterator[str]:
    """Functions of the standard library that take numbers or arrays."""
    unary_to_ternary = ("{f}({v})", "{f}({v}, {v})", "{f}({v}, 2)", "{f}(2, {v})", "{f}([{v}, {v}], {v})",
                        "{f}([1, 2, 3, 4], {v})", "{f}({v}, 0)", "{f}(1)({v})", "{f}({v})([1, 2, 3, 4])",
                        "{f}('real')({v})", "{f}([1, 2, {v}])", "{f}([{v}, 2.0], 1)",
                        "{f}('__neg__')({v})")  # fmt: skip
    names = [f"operator.{n}" for n in dir(operator) if not n.startswith("__") and callable(getattr(operator, n))]
    names = [n for n in names if not n.partition(".")[2].startswith("_")]
    yield from _calls(names, unary_to_ternary, "n x c xs ns m cs")
    for module in ("statistics", "copy", "functools", "collections"):
        names = [f"{module}.{n}" for n in public(NAMES[module]) if is_called(getattr(NAMES[module], n))]
        yield from _calls(names, (*unary_to_ternary, *HIGHER), "n x c xs")
    names = [f"itertools.{n}" for n in public(itertools) if n != "tee"]
    sliced = tuple(f"tuple(itertools.islice({pattern}, 4))" for pattern in (*HIGHER, "{f}({v})", "{f}({v}, {v})",
                                                                            "{f}(1, {v})"))  # fmt: skip
    yield from _calls(names, sliced, "n x c xs")


GROUPS = {
    "numpy": numpy_calls,
    "ufuncs": ufunc_calls,
    "math": math_calls,
    "numbers": number_calls,
    "methods": method_calls,
    "builtins": builtin_calls,
    "library": library_calls,
}
