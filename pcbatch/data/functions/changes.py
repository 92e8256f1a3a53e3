"""Changes in place, as functions of values: each works on a copy of a variable's value and returns the changed copy.

A path is a tuple of keys from the value to the part that changes: indices, slices, and `Field` for an attribute. Lists,
dicts and objects are changed as Python does; arrays as NumPy does (`array_items`).
"""

from __future__ import annotations

import copy
import dataclasses
import operator
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType, MethodType

import jax
import jax.extend.source_info_util

from pcbatch.data.aliasing import forget_copy, note_changing, one_of, source_of_copy
from pcbatch.data.catalogue import FUNCTIONS, NEXT
from pcbatch.data.checks import require
from pcbatch.data.container import Container
from pcbatch.data.elements import kept
from pcbatch.data.functions import array_items, heaps, iteration, mappings, operators
from pcbatch.data.functions.builtins import sorted_
from pcbatch.data.functions.exceptions import changed_by_class, changing
from pcbatch.data.functions.lifted import changeable, lifted, with_members
from pcbatch.data.functions.python_objects import as_in_python, require_attribute
from pcbatch.data.functions.sequence_builtins import get_item, list_
from pcbatch.data.functions.truth import ARRAYS
from pcbatch.data.functions.users_code import load_attribute, substitute, users_method, users_setter
from pcbatch.data.mappings.entries import Entries
from pcbatch.data.mappings.lane_set import DictView, LaneFrozenSet
from pcbatch.data.object_parts import is_user_code
from pcbatch.data.objects import attributes
from pcbatch.data.objects.reference import Ref
from pcbatch.data.optional import Optional, sure
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.sequences.lane_tuple import LaneTuple
from pcbatch.data.texts.lane_text import LaneText
from pcbatch.data.texts.text_parts import TextParts
from pcbatch.data.values import Value
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal

jax.extend.source_info_util.register_exclusion(__file__)

Path = tuple[Value, ...]
BOTH = (True, False)  # the levels of a change: it is one of an object, and of those inside it
IMMUTABLE = (bool, int, float, complex, str, bytes, tuple, LaneText, LaneTuple, LaneFrozenSet)


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """The key in a path that stands for an attribute."""

    name: str


def item(value: Value, path: Path) -> Value:
    """Return the part of a value at a path."""
    for key in path:
        value = _there(value, key)
        value = _read(value if isinstance(value, ARRAYS) else _indexable(value, key), key)
    return value


def has_next(value: Value, path: Path) -> Value:
    """Whether the iterator at a path in a value has an element left."""
    return iteration.is_left(item(value, path))


def exchange_items(value: Value, paths: Sequence[Path], sources: Sequence[int]) -> Value:
    """Return the value after an assignment that gives each of some parts what another has, by its number.

    Rows of an array are views: an assignment is seen in what the next ones store, as in NumPy.
    """
    value = copy_of(value)
    before = [copy_of(item(value, path)) for path in paths]
    views = [isinstance(item(value, path[:-1]), ARRAYS) and array_items.is_basic(path[-1]) for path in paths]
    new = [kept(old, before[source]) for old, source in zip(before, sources, strict=True)]
    for k, source in enumerate(sources):
        seen = source < k and views[source] and before[source].ndim > 0
        value = set_item(value, paths[k], copy_of(item(value, paths[source])) if seen else new[k])
    return value


def set_item(value: Value, path: Path, new: Value) -> Value:
    """Return the value after `value[path] = new`."""
    return _changed_item(copy_of(value), path, lambda part, key: _store(part, key, new), (True,))


def put_part(value: Value, path: Path, new: Value) -> Value:
    """Return a value whose part at a path has been changed in place, and is `new` by now.

    It is no assignment, as a slice of a list is a new list: nothing else shows what has become of that.
    """
    return _changed(copy_of(value), path, lambda part: new)


def augment_item(value: Value, path: Path, name: str, operand: Value, *before: Value) -> Value:
    """Return the value after `value[path] += operand`, or another operator by the name of its support function.

    `before` has what `value[path]` was before the operand was evaluated, if that may differ from what it is now; an
    object that can be changed in place is the same one still: the check of ownership makes sure, or `as_value`.
    """

    def change(part: Value, key: Value) -> Value:
        fixed = before and is_immutable(before[0]) and _is_read(part, key)

        def new(now: Value) -> Value:
            same = not fixed or (type(before[0]) is tuple and not before[0] and not is_immutable(now))
            return augmented(name, now if same else before[0], operand)

        if isinstance(part, ARRAYS):
            return array_items.augment(part, key, new)
        part = _indexable(part, key)
        part = _store(part, key, new(_read(part, key)))
        if isinstance(part, Ref) and isinstance(key, Field):
            attributes.note_changed(part, key.name)
        return part

    return _changed_item(copy_of(value), path, change)


def old_item(value: Value, path: Path) -> Value:
    """Return what `value[path]` is before `value[path] += ...` evaluates its right side.

    It is 0 for a part of an array that is a view, or that no lane can take by itself.
    """
    *before, key = path
    part = item(value, tuple(before))
    return item(part, (key,)) if _is_read(part, key) else 0


def _is_read(part: Value, key: Value) -> bool:
    return not isinstance(part, ARRAYS) or array_items.is_element(key)


def is_immutable(value: Value) -> bool:
    """Return whether an object is one that no operator changes in place, such as a number or a text."""
    if isinstance(value, ARRAYS):
        return value.ndim == 0
    if isinstance(value, Optional):
        return is_immutable(value.value)
    return value is None or isinstance(value, IMMUTABLE)


def delete_item(value: Value, path: Path) -> Value:
    """Return the value after `del value[path]`."""

    def change(part: Value, key: Value) -> Value:
        if isinstance(key, Field):
            if as_in_python(part, lambda plain: delattr(plain, key.name)):
                raise Refusal("PCB304", f"an attribute of a {type_name(part)} is deleted")
            delattr(part, key.name)
            return part
        part = _indexable(part, key)
        changed_by_class(part, "__delitem__", partial(operator.delitem, part, key))
        return part

    return _changed_item(copy_of(value), path, change, (True,))


def call_method(
    value: Value, path: Path, name: str, args: Sequence[Value], names: Sequence[str]
) -> tuple[Value, Value]:
    """Return the result of `value[path].name(*args)`, and the value after it; `names` are those of the last arguments.

    A name with a dot is that of a function which changes its first argument, `heapq.heappush`.
    """
    count = len(args) - len(names)
    plain, options = args[:count], dict(zip(names, args[count:], strict=True))
    results: list[Value] = []

    def change(part: Value) -> Value:
        part, result = _call(part, name, plain, options)
        results.append(result)
        return part

    # What a method gets may change elements: a function for `key`, or an iterator.
    levels = BOTH if any(callable(arg) or hasattr(arg, "__next__") for arg in args) else (True,)
    # A method that changes nothing may return the object, or one inside: that is the one of before then.
    changed = _changed(one_of(copy_of(value), [value]), path, change, levels)
    return results[0], changed


def augmented(name: str, old: Value, operand: Value) -> Value:
    """Return the value of `x` after `x += operand`: a list, a dict or a set is changed as Python would in place."""
    new = _augmented(name, old, operand)
    return kept(old, new) if is_immutable(old) else new


def _augmented(name: str, old: Value, operand: Value) -> Value:
    match old:
        case list() if name == "add":
            return _call(copy_of(old), "extend", (operand,), {})[0]
        case list() if name == "mul" and isinstance(operand, int):
            return [*old] * operand
        case dict() if name == "or_" and not isinstance(operand, Container):
            return {**old, **dict(operand)}
        case set() | frozenset():
            return getattr(operators, name)(old, operand)
    method = users_method(old, _in_place(name)) or getattr(type(old), _in_place(name), None)
    if method is not None and not isinstance(old, (*ARRAYS, int, float, complex, str, tuple)):
        return changed_by_class(old, _in_place(name), partial(method, copy_of(old), operand))
    if name == "matmul":
        return old @ operand
    return getattr(operators, name)(old, operand)


def _in_place(name: str) -> str:
    """The name of the method that Python calls for an operator in place."""
    return f"__i{'pow' if name == 'power' else name.rstrip('_')}__"


def _call(part: Value, name: str, args: Sequence[Value], options: dict[str, Value]) -> tuple[Value, Value]:
    """Call a method of an object that may be changed; return the object after it, and the result."""
    part = _there(part, Field(name))
    if name == NEXT:
        return part, iteration.advanced(part)
    if name in FUNCTIONS:
        return heaps.call(part, name, args, options)
    if name == "__getitem__" and not isinstance(part, dict | Entries | DictView):
        return part, get_item(part, *args)
    if isinstance(part, ARRAYS):
        return array_items.call(part, name, args, options), None
    part = changeable(part, name, args)
    if type(part) is list and name == "sort":
        return _sorted_list(part, options), None
    require_attribute(part, name)
    method = getattr(part, name)
    if isinstance(part, list | dict | set):
        return part, method(*args, **options)
    own = isinstance(method, MethodType) and isinstance(method.__func__, FunctionType) and is_user_code(method.__code__)
    if name == "sort" and not own:
        options = {**options, "key": mappings.order_key(options.get("key"))}
    called = partial(substitute(method), *args, **options)
    return part, changing(called, method.__code__) if own else called()


def _sorted_list(part: list[Value], options: dict[str, Value]) -> Value:
    made = sorted_(part, **options)
    part[:] = part if isinstance(made, LaneList) else map(kept, part, made)
    return made if isinstance(made, LaneList) else part


def _changed_item(
    value: Value, path: Path, change: Callable[[Value, Value], Value], levels: Sequence[bool] = BOTH
) -> Value:
    """Return a value after `change(part, key)` for the last key of a path, which returns the part after it."""
    *before, key = path
    for k in range(len(before)):
        part = item(value, path[:k])
        merged = array_items.merged(path[k:]) if isinstance(part, ARRAYS) else None
        if merged is not None:
            before, key = before[:k], merged
            break
    return _changed(value, tuple(before), lambda part: change(part, key), levels)


def _changed(value: Value, path: Path, change: Callable[[Value], Value], levels: Sequence[bool] = BOTH) -> Value:
    """Return a value after `change` of its part at a path, which returns the part after it: that one, or another."""
    if not path:
        return change(note_changing(value))
    key, *rest = path
    value = _there(value, key)
    if isinstance(value, ARRAYS):
        return array_items.changed(value, key, lambda part: _changed(part, tuple(rest), change))
    value = _indexable(value, key)
    if isinstance(value, Ref) and isinstance(key, Field):
        return _changed_field(value, key.name, tuple(rest), change, levels)
    part = _read(value, key)
    new = _changed(part, tuple(rest), change, levels)
    if isinstance(key, slice):  # a slice of a list is a new list, of the same objects
        return _with_slice(value, key, new) if rest else value
    return value if _is_same(part, new) else _replaced(value, key, new)


def _changed_field(ref: Ref, name: str, path: Path, change: Callable[[Value], Value], levels: Sequence[bool]) -> Value:
    """Return a record after `change` of the part at a path in a field of it."""
    part = load_attribute(ref, name)
    own = isinstance(part.value if isinstance(part, Optional) else part, Container)
    levels = BOTH if not own else (False,) if path else levels
    with attributes.changing(ref, name, levels):
        new = _changed(part, path, change, levels)
        if not _is_same(part, new):
            attributes.put_back(ref, name, new)
    return ref


def _is_same(part: Value, new: Value) -> bool:
    """Whether a part is still the object that it was before a change, and no copy of it."""
    if new is (part.value if isinstance(part, Optional) else part) and source_of_copy(part) is None:
        return True
    forget_copy(part)
    return False


def _with_slice(value: Value, key: slice, new: Value) -> Value:
    """Return a list after changes of the objects in a slice of it."""
    if type(value) is not list or type(new) is not list:
        title = "this changes an object in a slice of a list whose length differs between lanes"
        raise Refusal("PCB304", title, helps=("change it by its place in the whole list: `rows[k + 1].append(x)`",))
    return _replaced(value, key, new)


def _replaced(value: Value, key: Value, new: Value) -> Value:
    """Return a value with another part at a key, for a part that Python changes in place and lanes do not."""
    if isinstance(value, tuple):
        items = [*value]
        if isinstance(key, Field):
            return value._replace(**{key.name: new})  # type: ignore[attr-defined]
        items[key] = new
        return type(value)._make(items) if hasattr(value, "_make") else tuple(items)
    if isinstance(key, Field):
        object.__setattr__(value, key.name, new)
        return value
    value[key] = new
    return value


def _read(value: Value, key: Value) -> Value:
    if isinstance(key, Field):
        return load_attribute(value, key.name)
    return value[key]


def _store(part: Value, key: Value, new: Value) -> Value:
    """Return a part after `part[key] = new`."""
    part = _there(part, key)
    if isinstance(part, ARRAYS) and isinstance(key, Field):
        raise AttributeError(f"the attribute '{key.name}' of a number or an array is not writable")
    if isinstance(part, ARRAYS):
        return array_items.store(part, key, new)
    if isinstance(key, Field):
        if as_in_python(part, lambda plain: setattr(plain, key.name, None)):
            raise Refusal("PCB304", f"an attribute of a {type_name(part)} is assigned")
        assign = users_setter(part, key.name) or partial(setattr, part, key.name)
        changed_by_class(part, key.name, partial(assign, new))
        return part
    part = with_members(_indexable(part, key), key)
    if isinstance(key, slice) and isinstance(part, list | Container) and isinstance(new, Container):
        new = list_(new)
        part = LaneList.from_list(part) if isinstance(part, list) else part
    if (method := users_method(part, "__setitem__")) is not None:
        changed_by_class(part, "__setitem__", partial(method, part, key, new))
    else:
        part[key] = new
    return part


def _there(value: Value, key: Value) -> Value:
    """Return a value that must not be None, of which a part is taken or changed."""
    if isinstance(value, Optional) and isinstance(key, Field):
        require(value.present, "AttributeError", f"'NoneType' object has no attribute '{key.name}'")
        return value.value
    return sure(value, "'NoneType' object is not subscriptable")


def _indexable(value: Value, key: Value) -> Value:
    """Return a list or dict that is known while compiling as one of the lane, where the key is a value of the lane."""
    if type(value) is list:  # also where the key is an array that is known while compiling
        keys = (key.start, key.stop, key.step) if isinstance(key, slice) else (key,)
        return LaneList.from_list(value) if any(isinstance(part, jax.Array) for part in keys) else value
    return lifted(value, key) if type(value) is dict else value


def copy_of(value: Value) -> Value:
    """Return a value of new objects, all that can be changed: the leaves are the same."""
    if isinstance(value, (*ARRAYS, bool, int, float, complex, str, bytes, type)) or value is None:
        return value
    kind = type(value)
    if kind in (list, tuple):
        return kind(map(copy_of, value))
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return kind._make(copy_of(part) for part in value)
    if isinstance(value, dict):
        new = copy.copy(value)
        for key, part in value.items():
            new[key] = copy_of(part)
        return new
    leaves, tree = jax.tree.flatten(value, is_leaf=lambda part: isinstance(part, TextParts))
    leaves = [leaf.as_rows() if isinstance(leaf, TextParts) else leaf for leaf in leaves]
    if not jax.tree_util.treedef_is_leaf(tree) or isinstance(value, TextParts):
        return jax.tree.unflatten(tree, leaves)
    new = copy.copy(value)
    for name, part in getattr(new, "__dict__", {}).items():
        object.__setattr__(new, name, copy_of(part))
    return new
