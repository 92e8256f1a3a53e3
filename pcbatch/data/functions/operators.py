"""Python's operators on values of a lane, and on objects whose operators are methods of the user's.

A table at the end has all functions of Python that lane code calls, and those of this folder that replace them.
"""

from __future__ import annotations

import builtins
import collections
import copy
import functools
import heapq
import itertools
import operator
import queue
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from types import ModuleType
from typing import Any

import jax
import jax.extend.source_info_util
import jax.numpy as jnp
import numpy as np

from pcbatch.data.container import Collection, Container, lane_value
from pcbatch.data.functions import builtins as of_lane
from pcbatch.data.functions import mappings, python_numbers, sequence_builtins, texts, type_questions, users_code
from pcbatch.data.functions.iteration import DICT_VIEWS, KEYS_VIEW
from pcbatch.data.functions.lifted import lifted
from pcbatch.data.functions.python_objects import is_without
from pcbatch.data.functions.sequence_builtins import product
from pcbatch.data.functions.sequence_operators import are_dicts, are_sequences, compare
from pcbatch.data.functions.truth import ARRAYS, truth
from pcbatch.data.functions.users_code import PLAIN, elements_of, in_exception, method_of, substitute, users_method
from pcbatch.data.mappings.keys import hashable, is_of_lane
from pcbatch.data.members import data_of
from pcbatch.data.object_parts import is_plain_object
from pcbatch.data.objects.questions import RECORDS, own_method
from pcbatch.data.objects.record_copies import copied, deeply_copied
from pcbatch.data.objects.reference import Ref
from pcbatch.data.objects.tuples.operands import asked_for
from pcbatch.data.optional import Optional, is_none, narrowed, sure, unwrapped
from pcbatch.data.origins import Tracer, is_noting, number
from pcbatch.data.own_order import ask_which, has_order, is_told_by_identity, pair
from pcbatch.data.texts.lane_bytes import LaneBytes
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.values import Index, Value
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import NeedsUnrolling, Refusal

jax.extend.source_info_util.register_exclusion(__file__)

REFLECTED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def binary(name: str) -> Callable[[Value, Value], Value]:
    """Return the binary operator `name` of `python_numbers`, for objects too: they run copies of their methods."""
    operator = getattr(python_numbers, name)
    plain = {"power": "pow", "checked_power": "pow"}.get(name, name.rstrip("_"))
    dunder, reflected = f"__{plain}__", f"__{REFLECTED.get(plain, f'r{plain}')}__"

    is_comparison = plain in REFLECTED

    def run(a: Value, b: Value) -> Value:
        a, b = data_of(a), data_of(b)
        if isinstance(a, Optional) or isinstance(b, Optional):
            return _of_optional(run, plain, a, b)
        if is_comparison and is_noting() and (fields := pair(a, b, plain)) is not None:
            a, b = fields
        if (is_comparison and are_sequences(a, b)) or (plain in ("eq", "ne") and are_dicts(a, b)):
            return compare(plain, a, b)
        if (isinstance(a, PLAIN) and isinstance(b, PLAIN)) or not is_noting():
            return operator(a, b)
        if plain in ("eq", "ne"):
            ask_which(a, b)
        if plain == "ne" and inherits(a, dunder) and method_of(a, "__eq__") is not None:
            return not_(eq(a, b))
        own = None if isinstance(a, PLAIN) else method_of(a, dunder)
        other = None if isinstance(b, PLAIN) else method_of(b, reflected)
        if (not isinstance(b, PLAIN) and hasattr(type(b), "__jax_array__")) or (
            own is None and not isinstance(a, PLAIN) and not (is_comparison and inherits(a, dunder))
        ):
            return operator(a, b)  # a method that is not the user's
        calls = [(own, a, b), (other, b, a)]
        if type(b) is not type(a) and isinstance(b, type(a)):  # Python asks a subclass first
            calls.reverse()
        for method, value, operand in calls:
            if method is not None and (result := substitute(method)(value, operand)) is not NotImplemented:
                return result
        return operator(a, b)

    run.__name__ = name
    return run


def inherits(value: Value, name: str) -> bool:
    """Return whether a class has the comparison that all objects have."""
    return getattr(type(value), name) is getattr(object, name)


def _of_optional(operator: Callable[[Value, Value], Value], name: str, a: Value, b: Value) -> Value:
    """Apply an operator where an operand may be None, which equals nothing but None and has no other operators."""
    if name not in ("eq", "ne"):
        return operator(unwrapped(a), unwrapped(b))
    if a is None or b is None:
        equal = is_none(b if a is None else a)
    else:
        none_a, none_b = is_none(a), is_none(b)
        alike = operator(narrowed(a), narrowed(b))
        values = alike if name == "eq" else jnp.logical_not(alike)
        equal = jnp.logical_or(jnp.logical_and(none_a, none_b), ~jnp.logical_or(none_a, none_b) & values)
    return number(equal if name == "eq" else jnp.logical_not(equal))


def unary(name: str) -> Callable[[Value], Value]:
    """Return the unary operator `name` of `python_numbers`, for objects too (see `binary`)."""
    operator = getattr(python_numbers, name)

    def run(a: Value) -> Value:
        a = unwrapped(a)
        method = None if isinstance(a, PLAIN) or not is_noting() else method_of(a, f"__{name.rstrip('_')}__")
        return operator(a) if method is None else substitute(method)(a)

    run.__name__ = name
    return run


MOST_COPIES = 64  # of the body of a comprehension over a `range` of a known length


add, sub, mul, truediv, floordiv, mod, power, checked_power, lshift, rshift, and_, or_, xor = (
    binary(name) for name in "add sub mul truediv floordiv mod power checked_power lshift rshift and_ or_ xor".split()
)
eq, ne, lt, le, gt, ge = (binary(name) for name in "eq ne lt le gt ge".split())
mul = product(mul)
neg, pos, abs_, invert = (unary(name) for name in "neg pos abs_ invert".split())


def right_operand(value: Value, old: Value = None) -> Value:
    """The right side of `x += ...` in a helper, unchanged; `old` is the left side, if it is a variable.

    The call gives the code of the helper a cell with this module, by which `tracer_operators` knows its operators. A
    known list would become a list of the lane, another object, where Python changes it in place.
    """
    if type(old) is list and isinstance(value, Container | Tracer):
        title = "a list that is known while compiling is extended in place by values of the lane"
        raise Refusal("PCB304", title, helps=("write `xs = xs + ...`, which makes a new list",))
    return value


def decided(value: Value) -> bool:
    """A condition that Python itself decides, once for all lanes; a traced value raises at its own location."""
    return bool(value)


def not_(value: Value) -> Value:
    """The operator `not value`."""
    holds = truth(value)
    if isinstance(holds, jax.Array):
        return number(jnp.logical_not(holds))
    return np.logical_not(holds) if isinstance(value, ARRAYS) else not holds


def contains(item: Value, container: Value) -> Value:
    """The operator `item in container`, also for a traced item or container."""
    return number(_contains(item, container))


def _contains(item: Value, container: Value) -> Value:
    container = sure(container, "argument of type 'NoneType' is not iterable")
    if is_without(container, "__iter__"):
        raise TypeError(f"argument of type '{type_name(container)}' is not iterable")
    if isinstance(container, KEYS_VIEW):
        container = container.mapping
    elif isinstance(container, DICT_VIEWS):
        container = list(container)
    if isinstance(container, str | LaneText):
        item = sure(item, "'in <string>' requires string as left operand, not NoneType")
        item = asked_for(item, True, "TypeError", "'in <string>' requires string as left operand, not int")
    if isinstance(container, Ref) and (method := own_method(container, "__contains__")) is not None:
        return of_lane.bool_(substitute(method)(container, item))
    if isinstance(container, str | bytes) and isinstance(item, LaneText | LaneBytes | jax.Array):
        container = lane_value(container)
    if isinstance(container, Collection):
        return container.contains(item)
    if isinstance(item, Ref) and isinstance(container, set | frozenset | dict):
        return lifted(container, item).contains(item)
    if isinstance(item, Optional) and isinstance(container, set | frozenset | Mapping | range):
        return jnp.where(is_none(item), None in container, contains(narrowed(item), container))
    if isinstance(container, set | frozenset | dict) and is_plain_object(item) and is_of_lane(item):
        return _any_equal(hashable(item), filter(is_plain_object, container))
    if isinstance(container, jax.Array) or (isinstance(item, jax.Array) and isinstance(container, np.ndarray)):
        return jnp.any(jnp.asarray(container) == item)
    if isinstance(item, jax.Array) and isinstance(container, range):
        return _any_equal(item, container)
    if isinstance(container, tuple | list) and any(map(_holds_values, (item, *container))):
        return _any_equal(item, container)
    if _of_lane(item) and isinstance(container, set | frozenset | Mapping):
        kinds: Any = (bool, int, float, complex) if isinstance(item, jax.Array) else (tuple, Enum)
        kinds = (str, bytes) if isinstance(item, LaneText | LaneBytes) else kinds
        return _any_equal(item, (one for one in container if isinstance(one, kinds)))
    return item in container


def _of_lane(value: Value) -> bool:
    """Whether a value is an array or an object with values of the lane, or a tuple or a list that holds one."""
    return (
        isinstance(value, (jax.Array, LaneText, LaneBytes, Optional, *RECORDS))
        or has_order(value, "eq")
        or (isinstance(value, tuple | list) and any(map(_of_lane, value)))
    )


def _holds_values(value: Value) -> bool:
    """Whether a value is one with values of the lane, a dict that holds one, or an object that a method compares."""
    if type(value) is dict:
        return any(map(_holds_values, value.values()))
    own = not isinstance(value, PLAIN) and users_method(value, "__eq__") is not None
    return own or _of_lane(value) or is_told_by_identity(value)


def lacks(item: Value, container: Value) -> Value:
    """The operator `item not in container`, also for a traced item or container."""
    return not_(contains(item, container))


def _any_equal(item: Value, candidates: Iterable[Value]) -> Value:
    equal: Value = False
    for candidate in candidates:
        equal = jnp.logical_or(equal, truth(eq(item, candidate)))
    return equal


def range_element(start: Index, step: Index, index: Index, length: Index) -> Value:
    """The element of a `range` whose loop makes a list: where the length is known, so is that of the list."""
    known = not any(isinstance(value, jax.Array) for value in (start, step, length))
    if known and isinstance(index, jax.Array) and length <= MOST_COPIES:
        raise NeedsUnrolling(length)
    return add(start, mul(index, step))


def count_element(start: Index, step: Index, index: Index) -> Value:
    """The element of `itertools.count`; refuses floats, which Python adds one by one, and rounds each time."""
    for value in (start, step):
        if isinstance(value, float) or (isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, np.inexact)):
            title = "`itertools.count` counts by floats, beside another iterable"
            raise Refusal("PCB314", title, helps=("count whole numbers, and compute `start + k * step` of them",))
    return add(start, mul(index, step))


def smallest(n: Index, iterable: Value, key: Value = None) -> Value:
    """The function `heapq.nsmallest`: as many elements of the sorted ones as there are, and `n` at most."""
    return sequence_builtins.get_item(of_lane.sorted_(iterable, key=key), slice(None, of_lane.max_(n, 0)))


def largest(n: Index, iterable: Value, key: Value = None) -> Value:
    """The function `heapq.nlargest`."""
    found = of_lane.sorted_(iterable, key=key, reverse=True)
    return sequence_builtins.get_item(found, slice(None, of_lane.max_(n, 0)))


BY_NAME: tuple[tuple[Value, ModuleType, str], ...] = (
    (builtins, of_lane, "max min int float bool complex any all sorted pow range str repr ascii format"),
    (builtins, python_numbers, "round divmod sum"),
    (builtins, texts, "bin oct hex ord chr"),
    (builtins, sequence_builtins, "len list tuple bytes bytearray reversed"),
    (builtins, mappings, "set frozenset dict"),
    (builtins, type_questions, "isinstance type hasattr getattr callable dir id hash"),
    (builtins, users_code, "print"),
    (np, type_questions, "isscalar iterable"),
    (functools, sequence_builtins, "reduce"),
    (collections, sequence_builtins, "deque"),
)
"""Functions of Python that are replaced, each by one of its name and an underscore."""

OPERATORS = "add sub mul truediv floordiv mod lshift rshift and_ or_ xor not_ neg pos invert eq ne lt le gt ge"
REPLACED: list[tuple[Value, Callable[..., Value]]] = [
    *((getattr(a, name), getattr(b, f"{name}_")) for a, b, names in BY_NAME for name in names.split()),
    *((getattr(operator, name), globals()[name]) for name in OPERATORS.split()),
    (collections.Counter, mappings.counter),
    (collections.defaultdict, mappings.defaultdict),
    (collections.OrderedDict, mappings.ordered_dict),
    (queue.Queue, sequence_builtins.queue_),
    (queue.SimpleQueue, sequence_builtins.queue_),
    (queue.LifoQueue, sequence_builtins.stack_),
    (itertools.cycle, sequence_builtins.cycle_),
    (itertools.islice, sequence_builtins.islice_),
    (queue.PriorityQueue, sequence_builtins.priority_queue_),
    (heapq.nsmallest, smallest),
    (heapq.nlargest, largest),
    (copy.copy, copied),
    (copy.deepcopy, deeply_copied),
    (abs, abs_),
    (operator.abs, abs_),
    (operator.inv, invert),
    (operator.is_, of_lane.is_),
    (operator.is_not, of_lane.is_not),
    (operator.pow, power),
    (operator.iadd, python_numbers.iadd),  # the other operators in place have the same values without help
    (operator.ipow, python_numbers.ipow),
]
"""Functions, and those that replace them."""

LANES_ONLY = frozenset(
    "max_ min_ int_ float_ bool_ complex_ any_ all_ sorted_ range_ str_ repr_ ascii_ format_ not_".split()
)
"""Replaced in lane code only: in a helper, Python's own refuse traced values by themselves, or make text."""


OF_ELEMENTS = frozenset("sum_ max_ min_ any_ all_ sorted_".split())
"""The functions among them that go over one argument."""

OF_SEVERAL = (max, min, of_lane.max_, of_lane.min_)
"""Those that compare their arguments if they get several."""


def replacement(target: Value, in_helper: bool = False) -> Callable[..., Value] | None:
    """Return what replaces a function; None for all others."""
    found = next((new for function, new in REPLACED if target is function), None)
    left = in_helper and not in_exception() and found is not None and found.__name__ in LANES_ONLY
    if found is not None and found.__name__ in OF_ELEMENTS:
        return _going_over(target if left else found)
    return None if left else found


@functools.cache
def _going_over(function: Callable[..., Value]) -> Callable[..., Value]:
    """The function that goes over an object of the user's by a copy of its `__iter__`, and not as Python's own does."""

    @functools.wraps(function)
    def run(*args: Value, **options: Value) -> Value:
        taken = args[:1] if len(args) == 1 or function not in OF_SEVERAL else ()
        return function(*map(elements_of, taken), *args[len(taken) :], **options)

    return run
