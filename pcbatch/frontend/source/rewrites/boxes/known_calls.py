"""Calls of Python's own functions and methods, as far as which objects they give and hold is known."""

from __future__ import annotations

import bisect
import collections
import copy
import heapq
from collections.abc import Iterable, Sequence
from types import ModuleType

import gast

from pcbatch.frontend.source.rewrites.boxes.objects import Object
from pcbatch.frontend.source.tree import Node

NUMBERS = frozenset(
    (abs, all, any, bin, bool, callable, chr, complex, divmod, float, format, hash, hex, int, isinstance, len, oct, ord)
)
READING: frozenset[object] = NUMBERS | {pow, print, range, repr, round, str, bytes, heapq.heapify, bisect.bisect}
READING |= {bisect.bisect_left, bisect.bisect_right, type, issubclass, id}
COPYING = frozenset((list, tuple, sorted, set, frozenset, reversed, iter, collections.deque))
MAPPINGS = frozenset((dict, collections.OrderedDict, collections.defaultdict, collections.Counter))
NUMERIC_MODULES = frozenset(("math", "cmath", "numpy", "jax", "operator", "string"))

STORING = {"append": 0, "add": 0, "appendleft": 0, "insert": 1}  # the number of the argument that becomes an element
EXTENDING = frozenset(("extend", "extendleft", "update"))
TAKING = frozenset(("pop", "popleft"))
LOOKING = frozenset(("index", "count", "remove", "discard"))
PLAIN = LOOKING | frozenset(("clear", "reverse", "rotate", "move_to_end", "isdisjoint", "issubset", "issuperset"))
TEXTS = frozenset(
    """capitalize casefold center endswith expandtabs find format isalnum isalpha isdigit islower isspace isupper join
    ljust lower lstrip replace rfind rindex rjust rstrip startswith strip swapcase title translate upper zfill encode
    bit_length hex partition split splitlines rsplit""".split()
)
UNITED = frozenset(("union", "intersection", "difference", "symmetric_difference"))

HEAPS = {heapq.heappush, heapq.heappushpop, heapq.heapreplace, heapq.heappop, bisect.insort, bisect.insort_left}
HEAPS |= {bisect.insort_right}
SELECTED = frozenset((heapq.nlargest, heapq.nsmallest))


def updates(node: Node) -> dict[str, Node]:
    """Return the values that `d.update(a=x, b=y)`, or `d.update({"a": x, "b": y})`, stores under literal keys; none for
    other calls."""
    match node:
        case gast.Call(func=gast.Attribute(attr="update"), args=[], keywords=keywords):
            pairs = [(one.arg, one.value) for one in keywords]
        case gast.Call(func=gast.Attribute(attr="update"), args=[gast.Dict(keys=keys, values=values)], keywords=[]):
            pairs = [(getattr(key, "value", None), value) for key, value in zip(keys, values, strict=True)]
        case _:
            return {}
    return dict(pairs) if all(isinstance(key, str) for key, _ in pairs) else {}


def is_numeric(function: object) -> bool:
    """Return whether a function is one of a module of numbers, which holds none of its arguments."""
    module = function.__name__ if isinstance(function, ModuleType) else str(getattr(function, "__module__", None))
    return module.partition(".")[0] in NUMERIC_MODULES


def tuple_of(parts: Iterable[Object]) -> Object:
    """Return a tuple of objects."""
    made = Object()
    for k, part in enumerate(parts):
        made.part(k).unite(part)
    return made


def listed(elements: Object) -> Object:
    """Return a list of objects."""
    made = Object()
    made.elements().unite(elements)
    return made


def copied(value: Object) -> Object:
    """Return another container with what one holds."""
    made = Object()
    made.elements().unite(value.elements())
    made.key().unite(value.key())
    return made


def paired(pairs: Object) -> Object:
    """Return the dict of pairs of keys and values."""
    made, pair = Object(), pairs
    made.key().unite(pair.part(0))
    made.elements().unite(pair.part(1))
    return made


def of_heap(function: object, args: Sequence[Object]) -> Object:
    """Return what a function gives that changes its first argument, a heap or a sorted list, and has it hold others."""
    for each in args[1:2]:
        args[0].elements().unite(each)
    return args[0].elements() if function in HEAPS else Object()


def of_copy(function: object, value: Object) -> Object:
    """Return what `copy.copy` and `copy.deepcopy` give."""
    return copied(value) if function is copy.copy else Object(outside=True)
