"""The support module: the functions that compiled primitives call where Python's own operators refuse traced values.

Every function here means the same as the Python construct it stands for when its arguments are plain values.
Primitives reach this module through a closure cell, so no user name can hide it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import Enum
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.containers.container import Container
from pcbatch.containers.elements import Rows
from pcbatch.containers.lane_list import LaneList
from pcbatch.containers.lane_list import unpacked as unpacked
from pcbatch.containers.lane_range import LaneRange
from pcbatch.containers.lane_text import LaneText
from pcbatch.containers.lane_tuple import transposed as transposed
from pcbatch.containers.optional import Optional, sure
from pcbatch.containers.optional import narrowed as narrowed
from pcbatch.containers.optional import unwrapped as unwrapped
from pcbatch.containers.own_order import has_order
from pcbatch.errors import NeedsUnrolling, Refusal
from pcbatch.frontend.support import helpers, mappings, mutation
from pcbatch.frontend.support.builtins import all_ as all_
from pcbatch.frontend.support.builtins import any_ as any_
from pcbatch.frontend.support.builtins import ascii_ as ascii_
from pcbatch.frontend.support.builtins import bool_ as bool_
from pcbatch.frontend.support.builtins import complex_ as complex_
from pcbatch.frontend.support.builtins import float_ as float_
from pcbatch.frontend.support.builtins import format_ as format_
from pcbatch.frontend.support.builtins import greater
from pcbatch.frontend.support.builtins import int_ as int_
from pcbatch.frontend.support.builtins import is_ as is_
from pcbatch.frontend.support.builtins import is_not as is_not
from pcbatch.frontend.support.builtins import max_ as max_
from pcbatch.frontend.support.builtins import min_ as min_
from pcbatch.frontend.support.builtins import pow_ as pow_
from pcbatch.frontend.support.builtins import range_ as range_
from pcbatch.frontend.support.builtins import refuse_impure as refuse_impure
from pcbatch.frontend.support.builtins import repr_ as repr_
from pcbatch.frontend.support.builtins import shown as shown
from pcbatch.frontend.support.builtins import sorted_ as sorted_
from pcbatch.frontend.support.builtins import str_ as str_
from pcbatch.frontend.support.defaults import own_defaults as own_defaults
from pcbatch.frontend.support.dict_loops import entries_of as entries_of
from pcbatch.frontend.support.dict_loops import live_length as live_length
from pcbatch.frontend.support.dict_loops import live_row as live_row
from pcbatch.frontend.support.dict_loops import live_rows as live_rows
from pcbatch.frontend.support.dict_loops import moved as moved
from pcbatch.frontend.support.dict_loops import same_size as same_size
from pcbatch.frontend.support.dict_loops import watched as watched
from pcbatch.frontend.support.drafts import begun as begun
from pcbatch.frontend.support.drafts import draft as draft
from pcbatch.frontend.support.drafts import finished as finished
from pcbatch.frontend.support.drafts import runs as runs
from pcbatch.frontend.support.exceptions import attempt as attempt
from pcbatch.frontend.support.exceptions import is_caught as is_caught
from pcbatch.frontend.support.exceptions import raised as raised
from pcbatch.frontend.support.iteration import DICT_VIEWS, KEYS_VIEW
from pcbatch.frontend.support.iteration import all_items as all_items
from pcbatch.frontend.support.iteration import appended as appended
from pcbatch.frontend.support.iteration import as_it_is as as_it_is
from pcbatch.frontend.support.iteration import axis_first as axis_first
from pcbatch.frontend.support.iteration import counted as counted
from pcbatch.frontend.support.iteration import following as following
from pcbatch.frontend.support.iteration import iter_length as iter_length
from pcbatch.frontend.support.iteration import one_less as one_less
from pcbatch.frontend.support.iteration import range_length as range_length
from pcbatch.frontend.support.iteration import range_size as range_size
from pcbatch.frontend.support.iteration import range_start as range_start
from pcbatch.frontend.support.iteration import repeated_element as repeated_element
from pcbatch.frontend.support.iteration import row as row
from pcbatch.frontend.support.iteration import rows as rows
from pcbatch.frontend.support.iteration import same_length as same_length
from pcbatch.frontend.support.iteration import shortest as shortest
from pcbatch.frontend.support.iteration import single as single
from pcbatch.frontend.support.iteration import stacked as stacked
from pcbatch.frontend.support.iteration import star_item as star_item
from pcbatch.frontend.support.iteration import starred as starred
from pcbatch.frontend.support.iteration import stored_length as stored_length
from pcbatch.frontend.support.iteration import stored_row as stored_row
from pcbatch.frontend.support.iteration import stored_rows as stored_rows
from pcbatch.frontend.support.libraries import from_numpy as from_numpy
from pcbatch.frontend.support.links import fixed_key as fixed_key
from pcbatch.frontend.support.links import linked_item as linked_item
from pcbatch.frontend.support.links import linked_rows as linked_rows
from pcbatch.frontend.support.mappings import SPREAD as SPREAD
from pcbatch.frontend.support.mappings import added as added
from pcbatch.frontend.support.mappings import any_order as any_order
from pcbatch.frontend.support.mappings import counter as counter
from pcbatch.frontend.support.mappings import defaultdict as defaultdict
from pcbatch.frontend.support.mappings import dict_ as dict_
from pcbatch.frontend.support.mappings import dict_display as dict_display
from pcbatch.frontend.support.mappings import empty_set as empty_set
from pcbatch.frontend.support.mappings import frozenset_ as frozenset_
from pcbatch.frontend.support.mappings import set_ as set_
from pcbatch.frontend.support.mappings import set_display as set_display
from pcbatch.frontend.support.mappings import with_item as with_item
from pcbatch.frontend.support.match import between as between
from pcbatch.frontend.support.match import equals as equals
from pcbatch.frontend.support.match import has as has
from pcbatch.frontend.support.match import has_keys as has_keys
from pcbatch.frontend.support.match import is_instance as is_instance
from pcbatch.frontend.support.match import is_sequence as is_sequence
from pcbatch.frontend.support.match import positional as positional
from pcbatch.frontend.support.match import same as same
from pcbatch.frontend.support.match import without as without
from pcbatch.frontend.support.mutation import delete_item as delete_item
from pcbatch.frontend.support.mutation import field as field
from pcbatch.frontend.support.mutation import item as item
from pcbatch.frontend.support.mutation import old_item as old_item
from pcbatch.frontend.support.mutation import put_part as put_part
from pcbatch.frontend.support.mutation import set_item as set_item
from pcbatch.frontend.support.mutation import swap_items as swap_items
from pcbatch.frontend.support.number_methods import method as method
from pcbatch.frontend.support.object_operators import binary, unary
from pcbatch.frontend.support.python_numbers import attribute as attribute
from pcbatch.frontend.support.python_numbers import divmod_ as divmod_
from pcbatch.frontend.support.python_numbers import iadd as iadd
from pcbatch.frontend.support.python_numbers import ipow as ipow
from pcbatch.frontend.support.python_numbers import is_power as is_power
from pcbatch.frontend.support.python_numbers import round_ as round_
from pcbatch.frontend.support.python_numbers import sum_ as sum_
from pcbatch.frontend.support.sequences import deque_ as deque_
from pcbatch.frontend.support.sequences import get_item as get_item
from pcbatch.frontend.support.sequences import len_ as len_
from pcbatch.frontend.support.sequences import list_ as list_
from pcbatch.frontend.support.sequences import list_display as list_display
from pcbatch.frontend.support.sequences import priority_queue_ as priority_queue_
from pcbatch.frontend.support.sequences import product
from pcbatch.frontend.support.sequences import queue_ as queue_
from pcbatch.frontend.support.sequences import reduce_ as reduce_
from pcbatch.frontend.support.sequences import reversed_ as reversed_
from pcbatch.frontend.support.sequences import slice_ as slice_
from pcbatch.frontend.support.sequences import stack_ as stack_
from pcbatch.frontend.support.sequences import tuple_ as tuple_
from pcbatch.frontend.support.texts import bin_ as bin_
from pcbatch.frontend.support.texts import chr_ as chr_
from pcbatch.frontend.support.texts import equals_one
from pcbatch.frontend.support.texts import hex_ as hex_
from pcbatch.frontend.support.texts import oct_ as oct_
from pcbatch.frontend.support.texts import ord_ as ord_
from pcbatch.frontend.support.texts import percent as percent
from pcbatch.frontend.support.texts import piece as piece
from pcbatch.frontend.support.texts import template as template
from pcbatch.frontend.support.texts import text_method as text_method
from pcbatch.frontend.support.traced_effects import kept_in as kept_in
from pcbatch.frontend.support.traced_effects import kept_outside as kept_outside
from pcbatch.frontend.support.traced_effects import outside as outside
from pcbatch.frontend.support.traced_effects import print_ as print_
from pcbatch.frontend.support.truth import ARRAYS
from pcbatch.frontend.support.truth import truth as truth
from pcbatch.frontend.support.type_questions import callable_ as callable_
from pcbatch.frontend.support.type_questions import class_ as class_
from pcbatch.frontend.support.type_questions import dir_ as dir_
from pcbatch.frontend.support.type_questions import getattr_ as getattr_
from pcbatch.frontend.support.type_questions import hasattr_ as hasattr_
from pcbatch.frontend.support.type_questions import hash_ as hash_
from pcbatch.frontend.support.type_questions import id_ as id_
from pcbatch.frontend.support.type_questions import isinstance_ as isinstance_
from pcbatch.frontend.support.type_questions import isscalar_ as isscalar_
from pcbatch.frontend.support.type_questions import iterable_ as iterable_
from pcbatch.frontend.support.type_questions import type_ as type_
from pcbatch.frontend.support.type_questions import type_test as type_test
from pcbatch.origins import Tracer
from pcbatch.origins import array as array
from pcbatch.origins import number as number
from pcbatch.records import questions
from pcbatch.records.questions import RECORDS, own_method
from pcbatch.records.reference import Ref

MOST_COPIES = 64  # of the body of a comprehension over a `range` of a known length


def substitute(fn: Any) -> Any:
    """Return the callable that stands in for a function that is not batched (see `helpers.substitute`)."""
    return helpers.substitute(fn, sys.modules[__name__])


# Operators of objects run copies of their methods; of all other values they are those of `python_numbers`.
add, sub, mul, truediv, floordiv, mod, power, checked_power, lshift, rshift, and_, or_, xor = (
    binary(name, substitute)
    for name in "add sub mul truediv floordiv mod power checked_power lshift rshift and_ or_ xor".split()
)
eq, ne, lt, le, gt, ge = (binary(name, substitute) for name in "eq ne lt le gt ge".split())
mul = product(mul)
neg, pos, abs_, invert = (unary(name, substitute) for name in "neg pos abs_ invert".split())


see_through = helpers.see_through


def load_attribute(value: Any, name: str) -> Any:
    """The attribute `value.name`, which may be a property (see `helpers.load_attribute`)."""
    return helpers.load_attribute(value, name, sys.modules[__name__])


def named_part(value: Any, cls: Any, name: str) -> Any:
    """The attribute of a value that a keyword of a class pattern is matched with."""
    return questions.field_of(value, cls, name) if isinstance(value, RECORDS) else load_attribute(value, name)


def right_operand(value: Any, old: Any = None) -> Any:
    """The right side of `x += ...` in a helper, unchanged; `old` is the left side, if it is a variable.

    The call gives the code of the helper a cell with this module, by which `tracer_operators` knows its operators. A
    known list would become a list of the lane, another object, where Python changes it in place.
    """
    if type(old) is list and isinstance(value, Container | Tracer):
        title = "a list that is known while compiling is extended in place by values of the lane"
        raise Refusal("PCB304", title, helps=("write `xs = xs + ...`, which makes a new list",))
    return value


def decided(value: Any) -> bool:
    """A condition that Python itself decides, once for all lanes; a traced value raises at its own location."""
    return bool(value)


def not_(value: Any) -> Any:
    """The operator `not value`."""
    if isinstance(value, (Optional, Rows, LaneRange, *RECORDS)) or mappings.is_mapping(value):
        holds = truth(value)
        return number(jnp.logical_not(holds)) if isinstance(holds, jax.Array) else not holds
    if not isinstance(value, ARRAYS):
        return not value
    return number(jnp.logical_not(truth(value))) if isinstance(value, jax.Array) else np.logical_not(truth(value))


def contains(item: Any, container: Any) -> Any:
    """The operator `item in container`, also for a traced item or container."""
    return number(_contains(item, container))


def _contains(item: Any, container: Any) -> Any:
    container = sure(container, "argument of type 'NoneType' is not iterable")
    if isinstance(container, KEYS_VIEW):
        container = container.mapping
    elif isinstance(container, DICT_VIEWS):
        container = list(container)
    if isinstance(container, Ref) and (method := own_method(container, "__contains__")) is not None:
        return bool_(substitute(method)(container, item))
    if isinstance(container, LaneList | LaneRange | LaneText):
        return container.contains(item)
    if isinstance(item, LaneText) and isinstance(container, str):
        return LaneText.of(container).contains(item)
    if isinstance(item, Ref) and isinstance(container, set | frozenset | Mapping):
        return hash(item)  # refuses that
    if isinstance(item, LaneText) and isinstance(container, set | frozenset | Mapping):
        return equals_one(item, container)
    if mappings.is_mapping(container):
        return container.contains(item)
    if isinstance(container, jax.Array):
        return jnp.any(container == item)
    if isinstance(item, jax.Array) and isinstance(container, range | np.ndarray):
        if isinstance(container, np.ndarray):
            return jnp.any(jnp.asarray(container) == item)
        return _any_equal(item, tuple(container))
    if isinstance(container, tuple | list) and any(map(_of_lane, (item, *container))):
        return _any_equal(item, tuple(container))
    if isinstance(item, jax.Array) and isinstance(container, set | frozenset | Mapping):
        return _any_equal(item, tuple(x for x in container if isinstance(x, bool | int | float | complex)))
    if _of_lane(item) and isinstance(container, set | frozenset | Mapping):
        return _any_equal(item, tuple(x for x in container if isinstance(x, tuple | Enum)))
    return item in container


def _of_lane(value: Any) -> bool:
    """Whether a value is an array or an object with values of the lane, or a tuple or a list that holds one."""
    return (
        isinstance(value, (jax.Array, LaneText, Optional, *RECORDS))
        or has_order(value, "eq")
        or (isinstance(value, tuple | list) and any(map(_of_lane, value)))
    )


def lacks(item: Any, container: Any) -> Any:
    """The operator `item not in container`, also for a traced item or container."""
    return not_(contains(item, container))


def _any_equal(item: Any, candidates: tuple[Any, ...]) -> Any:
    equal: Any = False
    for candidate in candidates:
        equal = jnp.logical_or(equal, truth(eq(item, candidate)))
    return equal


def augmented(name: str, old: Any, operand: Any) -> Any:
    """The value of `x` after `x += operand`, or another operator by its name here."""
    return mutation.augmented(name, old, operand, sys.modules[__name__])


def augment_item(value: Any, path: tuple[Any, ...], name: str, operand: Any, *before: Any) -> Any:
    """The value of `x` after `x[path] += operand`, or another operator by its name here."""
    return mutation.augment_item(value, path, name, operand, sys.modules[__name__], before)


def call_method(value: Any, path: tuple[Any, ...], name: str, args: tuple[Any, ...], names: tuple[str, ...]) -> Any:
    """The result of `x[path].name(*args)` and the value of `x` after it (see `mutation.call_method`)."""
    return mutation.call_method(value, path, name, args, names, substitute)


def exceeds(a: Any, b: Any, name: str) -> Any:
    """Whether `a > b` as the builtin `max` or `min` compares."""
    return greater(a, b, name)


def range_element(start: Any, step: Any, index: Any, length: Any) -> Any:
    """The element of a `range` whose loop makes a list: where the length is known, so is that of the list."""
    known = not any(isinstance(value, jax.Array) for value in (start, step, length))
    if known and isinstance(index, jax.Array) and length <= MOST_COPIES:
        raise NeedsUnrolling(length)
    return add(start, mul(index, step))
