"""Questions that Python answers from the object: what type a value has, which attributes, whether it can be called.

A value of a lane is a tracer while its primitive is traced, and would answer as one. So the question is put to examples
of its value in the plain function: a number of Python for a scalar, a NumPy array and an array of JAX for an array. The
answer is known while compiling; a question on which the examples differ is refused. Patterns of `match` ask as well.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.data.container import Collection, Container
from pcbatch.data.functions.builtins import is_
from pcbatch.data.functions.python_numbers import attribute
from pcbatch.data.functions.python_objects import python_object
from pcbatch.data.functions.users_code import load_attribute
from pcbatch.data.mappings.key_objects import compares_identity
from pcbatch.data.mappings.lane_dict import LaneDict
from pcbatch.data.object_parts import is_plain_object
from pcbatch.data.objects import questions
from pcbatch.data.objects.attributes import class_attribute
from pcbatch.data.objects.questions import RECORDS
from pcbatch.data.objects.ref_type import MADE_TABLE
from pcbatch.data.objects.reference import Ref
from pcbatch.data.optional import Optional
from pcbatch.data.origins import KINDS, Origin, Tracer, kind_of, number, origin_of
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.sequences.lane_range import LaneRange
from pcbatch.data.stored import by_identity
from pcbatch.data.texts.lane_bytes import LaneByteArray, LaneBytes
from pcbatch.data.values import Value
from pcbatch.errors import Refusal

EXAMPLES: dict[type, tuple[Any, ...]] = {
    bool: (False, True),
    int: (0, 1, -7),
    float: (0.0, 2.5, -1.0),
    complex: (0j, 1 + 2j),
}
TESTS: dict[str, Callable[[Value, Value], Value]] = {
    "Is": operator.is_, "IsNot": operator.is_not, "Eq": operator.eq, "NotEq": operator.ne,
    "In": lambda a, b: a in b, "NotIn": lambda a, b: a not in b,
}  # fmt: skip
DTYPE_HELP = "ask for the dtype: `jnp.issubdtype(jnp.result_type(x), jnp.integer)`, or `jnp.floating`, `jnp.bool_`"
ARRAY_HELP = "`isinstance(x, (np.ndarray, jax.Array))` and `jnp.ndim(x) > 0` are the same for arrays of both"


def isinstance_(value: Value, cls: Any, /) -> Value:
    """The builtin `isinstance`, answered by examples of the value."""
    if isinstance(value, RECORDS):
        return questions.isinstance_(value, cls)
    return bool(_answer(lambda one: isinstance(one, cls), value, "whether it is of this class"))


def type_(*args: Value, **options: Value) -> Value:
    """The builtin `type`, answered by examples of the value."""
    if len(args) != 1 or options:
        return type(*args, **options)
    if isinstance(args[0], RECORDS):
        return questions.type_(args[0])
    return _answer(type, args[0], "its type")


def type_test(test: str, value: Value, other: Value) -> Value:
    """A comparison such as `type(value) is other`; `test` is the name of the operator in the syntax tree."""
    if isinstance(value, RECORDS):
        return questions.type_test(test, value, other)
    return _answer(lambda one: TESTS[test](type(one), other), value, "its type")


def same_type(test: str, a: Value, b: Value) -> Value:
    """A comparison such as `type(a) is type(b)`; `test` is the name of the operator in the syntax tree."""
    if isinstance(a, Ref) and isinstance(b, Ref):
        return questions.same_type(test, a, b)
    return type_test(test, b, type_(a)) if isinstance(b, Ref) else type_test(test, a, type_(b))


def of_type(value: Value, name: str) -> Any:
    """The attribute `type(value).name`."""
    found = class_attribute(value, name) if isinstance(value, Ref) else None
    return getattr(type_(value), name) if found is None else found


def hasattr_(value: Value, name: str, /) -> Value:
    """The builtin `hasattr`, answered by examples of the value."""
    if isinstance(value, RECORDS):
        return questions.hasattr_(value, name)
    return bool(_answer(lambda one: hasattr(one, name), value, f"whether it has `{name}`"))


def getattr_(value: Value, name: str, /, *default: Value) -> Value:
    """The builtin `getattr`; for a tracer, the attributes are those of examples of the value."""
    if not isinstance(name, str):
        raise TypeError("getattr(): attribute name must be string")
    if name == "__class__" and isinstance(value, Tracer):
        return type_(value)
    if isinstance(value, (Collection, Optional, *RECORDS)) and not (default and isinstance(value, Ref)):
        return default[0] if default and not hasattr_(value, name) else load_attribute(value, name)
    if not isinstance(value, Tracer):
        return getattr(value, name, *default)
    if default and not hasattr_(value, name):
        return default[0]
    return attribute(value, name) if name in ("real", "imag") else getattr(value, name, *default)


def class_(value: Value) -> Any:
    """The attribute `value.__class__`, answered by examples of the value."""
    return type_(value) if isinstance(value, (Tracer, *RECORDS)) else value.__class__


def callable_(value: Value, /) -> bool:
    """The builtin `callable`, answered by examples of the value."""
    return bool(_answer(callable, value, "whether it can be called"))


def dir_(*args: Value) -> list[str]:
    """The builtin `dir`, answered by examples of the value."""
    return dir(*args) if len(args) != 1 else _answer(dir, args[0], "its attributes")


def id_(value: Value, /) -> int:
    """The builtin `id`: of a record of the lane its number; refuses other values of a lane."""
    if isinstance(value, Ref) and value.pcbatch_type.table == MADE_TABLE:
        return number(value.pcbatch_id)  # type: ignore[no-any-return]
    if is_plain_object(value):
        title = f"`id` tells objects of the class {type(value).__name__} apart"
        raise by_identity("PCB305", title, "ask `is`, or compare fields of theirs", value)
    if isinstance(value, type | ModuleType | FunctionType | BuiltinFunctionType | Enum | None):
        return id(value)
    return _no_object("id", "ask `is` to compare objects, and `==` to compare values")


def hash_(value: Value, /) -> int:
    """The builtin `hash`; refuses values of a lane."""
    if isinstance(value, (Tracer, *RECORDS)) or (is_plain_object(value) and compares_identity(type(value))):
        return _no_object("hash", "write `==` to compare values")
    return hash(value)


def _no_object(name: str, help: str) -> int:
    title = f"`{name}` is of one Python object, and values of lanes are not objects"
    raise Refusal("PCB305", title, helps=(help,))


def isscalar_(value: Value) -> bool:
    """The function `np.isscalar`, answered by examples of the value."""
    return bool(_answer(np.isscalar, value, "whether it is a scalar of Python or an array"))


def iterable_(value: Value) -> bool:
    """The function `np.iterable`, answered by examples of the value."""
    return bool(_answer(np.iterable, value, "whether one can go over it"))


def _answer(question: Callable[[Value], Value], value: Value, what: str) -> Value:
    """The answer to a question about a value; raises Refusal (PCB305) if examples of the value differ in it."""
    if isinstance(value, Optional):
        title = f"{what} is not known of a value that may be None"
        raise Refusal("PCB305", title, helps=("ask first whether `x is None`",))
    if not isinstance(value, Tracer):
        return question(python_object(value))
    answers = [question(example) for example in _examples(value)]
    first = answers[0]
    if all(type(answer) is type(first) and bool(answer == first) for answer in answers):
        return first
    raise _ambiguous(value, what)


def _ambiguous(value: Value, what: str) -> Refusal:
    if value.shape != ():
        title = f"{what} is not the same for an array of NumPy and for one of JAX"
        note = "an example may hold either, and `f.plain` makes arrays of JAX of both"
        return Refusal("PCB305", title.replace("its type", "the type"), note, helps=(ARRAY_HELP,))
    title = f"{what} is not known of this value: it may be a number of Python or a scalar in an array"
    if origin_of(value) is Origin.ARRAY:
        title = f"{what} is not the same for a scalar of NumPy and for one of JAX"
    note = "arguments and what operators make of them count as Python's numbers; what paths join must be of one type"
    return Refusal("PCB305", title, note, helps=(DTYPE_HELP, "convert it first: `int(x)`, `float(x)`"))


def _examples(value: Value) -> tuple[Value, ...]:
    """Objects that the value of a tracer may be in the plain function, at least one of each possible type."""
    kind = kind_of(value.dtype)
    if kind is None:
        return (_key(),)
    arrays = _arrays(value.ndim, np.dtype(value.dtype))
    if value.shape != () or origin_of(value) is Origin.ARRAY:
        return arrays
    if origin_of(value) is Origin.NUMBER:
        return EXAMPLES[kind]
    # An unknown origin: paths may join numbers of narrower types, which promotion has made this dtype.
    numbers = [example for lower in KINDS[: KINDS.index(kind) + 1] for example in EXAMPLES[lower]]
    return (*numbers, *arrays)


@functools.lru_cache(maxsize=256)
def _arrays(ndim: int, dtype: np.dtype[Any]) -> tuple[Value, ...]:
    array = np.zeros((1,) * ndim, dtype)
    with jax.ensure_compile_time_eval():
        return (array if ndim else array[()], jnp.asarray(array))


@functools.lru_cache(maxsize=1)
def _key() -> Value:
    with jax.ensure_compile_time_eval():
        return jax.random.key(0)


NUMBERS = (jax.Array, np.ndarray, np.generic, int, float, complex)
WHOLE = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)  # `int(n)` matches n itself


def matched(value: Value, asks_numbers: bool) -> Value:
    """Return the subject of a `match` in a helper that is traced, where Python itself looks at the patterns.

    It cannot tell what records, containers and optional values of a lane are, nor of which type a number is, where a
    pattern asks for that: the helper is compiled along then.
    """
    kinds = (Optional, Container, *RECORDS, *((jax.core.Tracer,) if asks_numbers else ()))
    if any(isinstance(part, kinds) for part in jax.tree.leaves(value, is_leaf=lambda part: isinstance(part, kinds))):
        help = "write the `match` in the batched function itself"
        raise Refusal("PCB305", "a `match` of a value of the lane where the compiler does not see it", helps=(help,))
    return value


def equals(value: Value, pattern: Value) -> Value:
    """The test of a literal pattern, `value == pattern`; a traced value equals only numbers."""
    if isinstance(value, Optional):
        return number(jnp.logical_and(value.present, equals(value.value, pattern)))
    for one, other in ((value, pattern), (pattern, value)):
        if isinstance(one, jax.Array) and not isinstance(other, NUMBERS):
            return False
    return value == pattern


def same(value: Value, pattern: Value) -> Value:
    """The test of a pattern None, True or False, `value is pattern`."""
    if isinstance(value, (Optional, *RECORDS)):
        return is_(value, pattern)
    if isinstance(value, jax.core.Tracer) and isinstance(pattern, bool):
        title = f"the pattern `{pattern}` asks for one Python object, and values of lanes are not objects"
        raise Refusal("PCB305", title, helps=("match `int(c)` with `0` and `1`, or write an `if`",))
    return value is pattern


def is_sequence(value: Value, count: int, more: bool) -> Value:
    """Whether a value is a sequence of `count` elements, or at least as many if `more`."""
    if isinstance(value, Optional):
        return number(jnp.logical_and(value.present, is_sequence(value.value, count, more)))
    if isinstance(value, RECORDS):
        return questions.is_sequence(value, count, more)
    if isinstance(value, LaneList | LaneRange) and not isinstance(value, LaneBytes | LaneByteArray):
        return number(value.length >= count if more else value.length == count)
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        return False
    return len(value) >= count if more else len(value) == count


def between(value: Value, start: int, after: int) -> Value:
    """The elements that `*rest` of a sequence pattern binds."""
    value = value.value if isinstance(value, Optional) else value
    if isinstance(value, LaneList):
        return value._plain()[start : value.length - after]
    return list(value[start : len(value) - after])


def has_keys(value: Value, keys: tuple[Value, ...]) -> Value:
    """Whether a value is a mapping with these keys."""
    if isinstance(value, Optional):
        return number(jnp.logical_and(value.present, has_keys(value.value, keys)))
    if isinstance(value, LaneDict):
        return number(jnp.all(jnp.array([True, *map(value.contains, keys)])))
    return isinstance(value, Mapping) and all(key in value for key in keys)


def without(value: Value, keys: tuple[Value, ...]) -> Value:
    """The items that `**rest` of a mapping pattern binds."""
    value = value.value if isinstance(value, Optional) else value
    if isinstance(value, LaneDict):
        rest = LaneDict()
        rest.update(value)
        for key in keys:
            rest.drop(key)
        return rest
    return {k: v for k, v in value.items() if k not in keys}


def is_instance(value: Value, cls: Any, count: int) -> Value:
    """Whether a value is of a class; raises TypeError if that has fewer than `count` positional sub-patterns."""
    holds = isinstance_(value, cls)
    if isinstance(holds, bool) and not holds:
        return False
    most = 1 if cls in WHOLE else len(getattr(cls, "__match_args__", ()))
    if count > most:
        plural = "" if most == 1 else "s"
        raise TypeError(f"{cls.__name__}() accepts {most} positional sub-pattern{plural} ({count} given)")
    return holds


def has(value: Value, name: str) -> Value:
    """Whether a value has an attribute."""
    return hasattr_(value, name)


def positional(value: Value, cls: Any, number: int) -> Value:
    """The part of a value that positional sub-pattern `number` of a class pattern is matched with."""
    if cls in WHOLE:
        return value
    name = cls.__match_args__[number]
    return questions.field_of(value, cls, name) if isinstance(value, RECORDS) else getattr(value, name)


def named_part(value: Value, cls: Any, name: str) -> Value:
    """The attribute of a value that a keyword of a class pattern is matched with."""
    return questions.field_of(value, cls, name) if isinstance(value, RECORDS) else load_attribute(value, name)
