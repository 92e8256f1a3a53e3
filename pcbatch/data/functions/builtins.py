"""Python's builtins for values of a lane: each gives one lane the value that Python gives one example.

Every function here calls the builtin itself when no argument is an array of JAX.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.aliasing import one_of
from pcbatch.data.checks import rules
from pcbatch.data.container import Container, as_lane_list, lane_value
from pcbatch.data.functions import mappings, texts
from pcbatch.data.functions.math_functions.integers import modular_power
from pcbatch.data.functions.math_functions.reals import to_integer
from pcbatch.data.functions.python_numbers import power
from pcbatch.data.functions.sequence_builtins import as_records, for_keys
from pcbatch.data.functions.sequence_operators import equal, ordered
from pcbatch.data.functions.truth import truth
from pcbatch.data.mappings.ordered_keys import keeping_order
from pcbatch.data.members import alike, data_of
from pcbatch.data.object_parts import is_plain_object
from pcbatch.data.objects import questions
from pcbatch.data.objects.decode import either as either_of
from pcbatch.data.objects.questions import RECORDS
from pcbatch.data.objects.reference import Ref
from pcbatch.data.objects.tuples.operands import as_number
from pcbatch.data.optional import Optional, is_none, unwrapped
from pcbatch.data.origins import Origin, either, note, number, of_lane, origin_of
from pcbatch.data.own_order import compared, comparing_elements
from pcbatch.data.rounding import to_float
from pcbatch.data.sequences import list_reductions
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.sequences.lane_range import LaneRange
from pcbatch.data.sequences.list_order import compare, may_lack_order, require_order
from pcbatch.data.stored import by_identity, parts
from pcbatch.data.texts.float_texts import float_of_text
from pcbatch.data.texts.lane_bytes import LaneByteArray, LaneBytes, bytes_of
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.texts.text_lists import sorted_characters
from pcbatch.data.texts.text_numbers import integer_of_text
from pcbatch.data.values import Flag, Value
from pcbatch.diagnostics.impure_calls import once
from pcbatch.errors import Refusal

_NOTHING: Any = object()


def max_(*args: Value, **options: Value) -> Value:
    """The builtin `max`: the first greatest of one or more values of a lane."""
    return _by_own_order(builtins.max, args, options)


def min_(*args: Value, **options: Value) -> Value:
    """The builtin `min`: the first least of one or more values of a lane."""
    return _by_own_order(builtins.min, args, options)


def _by_own_order(builtin: Callable[..., Value], args: tuple[Value, ...], options: dict[str, Value]) -> Value:
    """The extreme of values; where a method of the user's that compares them branches, the compiler writes that out."""

    def element() -> Value:
        values, key = args[0] if len(args) == 1 else args, options.get("key")
        if not isinstance(values, LaneList | list | tuple | range):
            return None
        first = values.element(0) if isinstance(values, LaneList) else values[0]
        return first if key is None else key(first)

    return comparing_elements(lambda: _extreme(builtin, args, **options), element)


def _extreme(
    builtin: Callable[..., Value],
    args: tuple[Value, ...],
    *,
    key: Value = None,
    default: Value = _NOTHING,
    **wrong: Value,
) -> Value:
    key = mappings.order_key(key)
    if key is None or len(args) == 1:
        args = tuple(map(unwrapped, args))
    options = {"key": key} | ({} if default is _NOTHING else {"default": default}) | wrong
    if not args or wrong or (len(args) > 1 and default is not _NOTHING):
        return builtin(*args, **options)  # raises Python's own error
    values = args[0] if len(args) == 1 else args
    rows, any_order = for_keys(values, key) if len(args) == 1 else (None, False)
    if rows is not None:
        return list_reductions.extreme(rows, builtin is builtins.max, key, any_order=any_order, **options_of(default))
    if isinstance(values, jax.Array) and key is None and values.ndim == 1 and values.size:
        return _extreme_element(builtin, values)
    if isinstance(values, jax.Array) and values.ndim > 1 and key is None:
        raise _ambiguous(builtin.__name__)
    items = alike(list(values))
    if any(isinstance(item, LaneText | LaneBytes) for item in items):
        return list_reductions.extreme(LaneList.from_list(items), builtin is builtins.max, key, **options_of(default))
    keys = [data_of(compared(item if key is None else key(item), "lt")) for item in items]
    items = as_records(items)
    if not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(keys)):
        place = builtin(range(len(items)), key=keys.__getitem__, **({"default": None} if "default" in options else {}))
        return default if place is None else items[place]
    if has_known_text(items) or _may_be_none(keys):
        return list_reductions.extreme(LaneList.from_list(items), builtin is builtins.max, key, **options_of(default))
    return _first_extreme(builtin, as_records(items, True), keys)


def has_known_text(items: list[Value]) -> bool:
    """Return whether there are texts of Python's in values of which the lane chooses."""
    return any(isinstance(leaf, str | bytes) for leaf in jax.tree.leaves(items))


def _may_be_none(keys: list[Value]) -> bool:
    """Return whether parts of keys are None in some lanes, or of some keys."""
    return any(part is None or isinstance(part, Optional) for part in parts(keys))


def options_of(default: Value) -> dict[str, Value]:
    """The options of an extreme of a list."""
    return {} if default is _NOTHING else {"default": default}


def _extreme_element(builtin: Callable[..., Value], xs: jax.Array) -> jax.Array:
    """The extreme element by Python's rule, from left to right: a NaN is skipped unless it comes first."""
    largest = builtin is builtins.max
    find = jnp.argmax if largest else jnp.argmin
    if not jnp.issubdtype(xs.dtype, jnp.floating):
        return xs[find(xs)]
    last = jnp.array(-jnp.inf if largest else jnp.inf, xs.dtype)
    place = find(jnp.where(jnp.isnan(xs), last, xs))
    # Where nothing is above -inf, the place may be that of a NaN.
    best = jnp.where(jnp.isnan(xs[place]), last, xs[place])
    return jnp.where(jnp.isnan(xs[0]), xs[0], best)


def _first_extreme(builtin: Callable[..., Value], items: list[Value], keys: list[Value]) -> Value:
    best, best_key = items[0], keys[0]
    for item, key in zip(items[1:], keys[1:], strict=True):
        require_order(key, best_key)
        better = _greater(key, best_key, builtin) if builtin is builtins.max else _greater(best_key, key, builtin)
        best, best_key = _either(better, item, best), _either(better, key, best_key)
    return best


def _greater(a: Value, b: Value, builtin: Callable[..., Value]) -> Value:
    """`a > b`; tuples and lists are compared as Python does, by the first elements that differ."""
    greater: Value
    if not (isinstance(a, tuple | list) and type(a) is type(b)):
        greater = compare(operator.gt, a, b) if may_lack_order(a, b) else a > b
        if getattr(greater, "shape", ()) != ():
            raise _ambiguous(builtin.__name__)
        return greater
    greater = len(a) > len(b)
    for x, y in reversed(list(zip(a, b, strict=False))):
        greater = _either(equal(x, y), greater, _greater(x, y, builtin))
    return greater


def exceeds(a: Value, b: Value, name: str) -> Value:
    """The comparison `a > b` of the builtin `max` or `min`, as a value of the lane."""
    order = "gt" if name == "max" else "lt"
    a, b = compared(a, order), compared(b, order)
    require_order(a, b)
    return number(_greater(a, b, getattr(builtins, name)))


def _either(condition: Flag, a: Value, b: Value) -> Value:
    if not isinstance(condition, jax.Array) or isinstance(a, Ref):
        return either_of(condition, a, b, "an operand") if isinstance(a, Ref) else a if condition else b
    return one_of(keeping_order(lambda x, y: note(jnp.where(condition, x, y), either(x, y)), a, b), [a, b])


def _ambiguous(name: str) -> Refusal:
    return Refusal(
        "PCB308",
        f"`{name}` compares whole values, and an array is neither greater nor less than another",
        "Python, too, finds the comparison of two arrays neither true nor false",
        helps=(
            f"write `jnp.{name}(xs)` for the {name}imum of all elements",
            f"write `jnp.{name}imum(xs, ys)` to choose element by element",
        ),
    )


def any_(values: Iterable[Value]) -> Value:
    """The builtin `any`, with each element taken as a condition."""
    return _any_or_all(values, True)


def all_(values: Iterable[Value]) -> Value:
    """The builtin `all`, with each element taken as a condition."""
    return _any_or_all(values, False)


def _any_or_all(values: Value, by: bool) -> Value:
    """Evaluate `any` (`by` is True) or `all` (False) from left to right, up to a known element that decides."""
    if (rows := as_lane_list(values)) is not None:
        return list_reductions.truths(rows, by)
    if isinstance(values, jax.Array) and values.ndim == 1:
        return number(jnp.any(values != 0) if by else jnp.all(values != 0))
    result: Value = not by
    for value in values:
        holds = truth(value)
        if not isinstance(holds, jax.Array):
            if bool(holds) is by:
                return by
        else:
            result = jnp.logical_or(result, holds) if by else jnp.logical_and(result, holds)
    return number(result)


def int_(*args: Value, **options: Value) -> Value:
    """The builtin `int`: a float is truncated, a small integer widened."""
    args, bases = tuple(as_number(arg, "int") for arg in args), (*args[1:], *options.values())
    if args and isinstance(args[0], LaneText | str if any(isinstance(b, jax.Array) for b in bases) else LaneText):
        return integer_of_text(lane_value(args[0]), *args[1:], **options)
    if options or len(args) != 1 or not isinstance(args[0], jax.Array):
        return int(*args, **options)
    value = _real_scalar("int", args[0])
    if rules().math_errors == "raise" and jnp.issubdtype(value.dtype, jnp.floating):
        return number(to_integer(jnp.trunc(value), "int"))
    wide = jnp.issubdtype(value.dtype, jnp.integer) and value.dtype.itemsize >= np.dtype(jnp.result_type(int)).itemsize
    return number(value if wide else value.astype(int), *args)


def float_(*args: Value) -> Value:
    """The builtin `float`, of a real scalar or a text of a lane."""
    args = tuple(as_number(arg, "float") for arg in args)
    if len(args) != 1 or not isinstance(args[0], jax.Array):
        return float_of_text(args[0]) if args and isinstance(args[0], LaneText) else float(*args)
    return number(to_float(_real_scalar("float", args[0])), *args)


def complex_(*args: Value, **options: Value) -> Value:
    """The builtin `complex`, of one or two scalars of a lane."""
    if any(isinstance(part, jax.Array | Optional) for part in (*args, *options.values())):
        return number(_complex(*map(unwrapped, args), **{name: unwrapped(part) for name, part in options.items()}))
    return complex(*args, **options)


def _complex(real: Value = 0.0, imag: Value = None) -> jax.Array:
    """The number `real + imag * 1j`, of which either part may be complex."""
    x, y = (jnp.asarray(part) for part in (real, 0.0 if imag is None else imag))
    parts = [_real_scalar("complex", jnp.real(part)).astype(float) for part in (x, y)]
    if jnp.iscomplexobj(x):
        parts[1] = x.imag if imag is None else parts[1] + x.imag
    return jax.lax.complex(parts[0] - y.imag if jnp.iscomplexobj(y) else parts[0], parts[1])


def bool_(*args: Value) -> Value:
    """The builtin `bool`, of a scalar of a lane."""
    if len(args) != 1 or isinstance(args[0], np.ndarray):
        return bool(*args)
    given = truth(args[0])
    return number(given, *args) if isinstance(given, jax.Array) else given


def _real_scalar(name: str, value: jax.Array) -> jax.Array:
    if value.shape != ():
        title = f"`{name}(x)` makes one number, not one for each element of an array of shape {value.shape}"
        raise Refusal("PCB306", title, helps=(f"write `x.astype({name})`",))
    if jnp.issubdtype(value.dtype, jnp.complexfloating):
        raise TypeError(f"can't convert complex to {name}")
    return value


def sorted_(values: Value, /, *, key: Value = None, reverse: Flag = False) -> Value:
    """The builtin `sorted`, whose keys may be numbers of a lane, or tuples of them."""
    key = mappings.order_key(key)
    if isinstance(values, LaneText) and key is None and isinstance(reverse, bool):
        return sorted_characters(values, reverse)
    rows, any_order = for_keys(values, key)
    if rows is not None:
        return list_reductions.ordered(rows, key, reverse, any_order)
    items = alike(list(values))
    if isinstance(reverse, jax.core.Tracer) or any(isinstance(item, LaneText | LaneBytes) for item in items):
        return list_reductions.ordered(LaneList.from_list(items), key, reverse)
    keys = [data_of(compared(item if key is None else key(item), "lt", True)) for item in items]
    unlike = len({len(x) for x in items if type(x) is list}) > 1 or any(isinstance(one, LaneList) for one in keys)
    if of_lane(keys) and (unlike or has_known_text([items, keys]) or _may_be_none(keys)):
        return list_reductions.ordered(LaneList.from_list(items), key, reverse)
    if not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(keys)):
        return [items[place] for place in sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)]
    return ordered(items, keys, bool(reverse))


def pow_(base: Value, exp: Value, mod: Value = None) -> Value:
    """The builtin `pow`, also for traced values."""
    base, exp = unwrapped(base), unwrapped(exp)
    if mod is not None and any(isinstance(value, jax.core.Tracer) for value in (base, exp, mod)):
        with jax.numpy_dtype_promotion("standard"):
            return number(modular_power(base, exp, mod), base, exp, mod)
    return power(base, exp) if mod is None else pow(base, exp, mod)


def range_(*args: Value) -> Value:
    """The builtin `range` outside the head of a loop."""
    args = tuple(map(unwrapped, args))
    if not 1 <= len(args) <= 3 or not any(isinstance(value, jax.core.Tracer) for value in args):
        return range(*args)
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    return LaneRange(start, stop, step)


def str_(*args: Value, **options: Value) -> Value:
    """The builtin `str`; of values of a lane, integers have a text."""
    if len(args) == 1 and not options and (made := texts.text(args[0])) is not None:
        return made
    if isinstance(args[0] if args else None, LaneBytes | LaneByteArray):
        return bytes_of(args[0]).decode(*args[1:], **options)
    return str(*map(shown, args), **options)


def repr_(value: Value) -> Value:
    """The builtin `repr`; of values of a lane, integers and objects of the user's have a text."""
    if of_lane(value) and (made := texts.text(value, texts.REPR)) is not None:
        return made
    return repr(shown(value))


def ascii_(value: Value) -> str:
    """The builtin `ascii`; refuses values of a lane."""
    return ascii(shown(value))


def format_(value: Value, *spec: Value) -> Value:
    """The builtin `format`; of values of a lane, integers and texts can be formatted."""
    if spec and isinstance(spec[0], LaneText):
        return texts.template((value, -1, spec[0]))
    if isinstance(value, LaneText) or texts.is_whole(value):
        return texts.formatted(value, *spec or ("",))
    return format(shown(value), *spec)


def shown(value: Value) -> Value:
    """Return a value that becomes text; refuses values of a lane, which have no text while compiling."""
    if of_lane(value):
        raise texts.no_text()
    return value


def _is_or_both_none(a: Value, b: Value) -> Value:
    """The operator `a is b` where one of the two, or each, may be None."""
    none = [_is_none(each) for each in (a, b)]
    both = jnp.logical_and(*none)
    if a is None or b is None:
        return number(both)
    same = is_(*(each.value if isinstance(each, Optional) else each for each in (a, b)))
    return number(jnp.logical_or(both, jnp.logical_and(same, jnp.logical_not(jnp.logical_or(*none)))))


def _is_none(value: Value) -> Flag:
    return questions.is_(value, None) if isinstance(value, RECORDS) else is_none(value)


def is_(a: Value, b: Value) -> Value:
    """The operator `a is b`; refuses a comparison of a value of a lane with a number or an array, and of two
    collections."""
    plain = (bool, int, float, complex, jax.Array, np.generic, np.ndarray)
    if isinstance(a, Optional) or isinstance(b, Optional):
        return _is_or_both_none(a, b)
    if isinstance(a, RECORDS) or isinstance(b, RECORDS):
        return questions.is_(a, b)
    for one, other in ((a, b), (b, a)):
        # There is one True and one False, so a bool of Python can be compared with them by its value.
        if isinstance(other, bool) and isinstance(one, jax.core.Tracer) and one.shape == ():
            if origin_of(one) is Origin.NUMBER:
                return number(one == other) if one.dtype == np.bool_ else False
    if any(isinstance(one, jax.core.Tracer) and isinstance(other, plain) for one, other in ((a, b), (b, a))):
        title = "`is` asks whether two names mean one Python object, and values of lanes are not objects"
        raise Refusal("PCB305", title, helps=("write `==`; for `c is True` just `c`, for `c is False` `not c`",))
    if _is_data(a) and _is_data(b):
        title = "`is` asks whether two names mean one object, and lists, tuples and dicts of a lane are values"
        help = "write `==`, or keep a number or a flag that says which of them it is"
        raise by_identity("PCB305", title, help, *(one for one in (a, b) if is_plain_object(one)))
    return a is b


def _is_data(value: Value) -> bool:
    """Return whether a value is built of others, so that what reaches a lane is a copy of it."""
    return isinstance(value, set | Container) or (value is not None and not jax.tree_util.all_leaves([value]))


def is_not(a: Value, b: Value) -> Value:
    """The operator `a is not b`; refuses what `is_` refuses."""
    same = is_(a, b)
    return number(jnp.logical_not(same)) if isinstance(same, jax.Array) else not same


def refuse_impure(name: str, kind: str, draw: str) -> Value:
    """Refuse a call that Python would make anew for every example, such as a draw of a random number."""
    title, helps = once(name, kind, draw)
    raise Refusal("PCB318", title, helps=helps)
