"""Code of the user's that runs while a primitive is traced: as copies, which see what Python's own code would see."""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

import jax
import jax.extend.source_info_util

from pcbatch.contexts import setting
from pcbatch.data.aliasing import Parts
from pcbatch.data.checks import collecting, pass_on, require
from pcbatch.data.container import Container
from pcbatch.data.functions.python_numbers import ATTRIBUTES, part
from pcbatch.data.functions.python_objects import require_attribute
from pcbatch.data.object_parts import is_user_code
from pcbatch.data.objects import questions
from pcbatch.data.objects.questions import RECORDS, own_method
from pcbatch.data.objects.reference import Ref
from pcbatch.data.optional import Optional
from pcbatch.data.origins import Tracer, is_noting, is_outside, leaves
from pcbatch.data.sequences.lane_iterator import Asked
from pcbatch.data.values import Value
from pcbatch.errors import Refusal

jax.extend.source_info_util.register_exclusion(__file__)

LIBRARIES = frozenset({"jax", "jaxlib", "numpy", "pcbatch"})
# Values whose attributes are not properties of the user's, and whose operators are not methods of the user's.
PLAIN = (Tracer, jax.Array, ModuleType, type, FunctionType, int, float, complex, str, list, dict)

MOST_BY_INDEX = 1000
"""The number of elements below which an object has to raise IndexError: an index of an array never does."""

_found: list[Callable[[Value], Value]] = []
_in_exception: ContextVar[bool] = ContextVar("pcbatch_in_exception", default=False)


def package_of(thing: Value) -> str:
    """Return the name of the package in which something is defined; no name if that is not known."""
    return str(getattr(thing, "__module__", "")).split(".")[0]


def substitute(fn: Any) -> Any:
    """Return the callable that stands in for `fn` while a primitive is traced; `fn` itself at any other time."""
    return _found[-1](fn) if _found and is_noting() else fn


def in_exception() -> bool:
    """Whether the code of an exception runs, whose texts are put together where it is traced."""
    return _in_exception.get()


def making_exception() -> AbstractContextManager[None]:
    """Have copies within the context put texts of values of the lane together: those that methods of exceptions make.

    Other helpers that make text are compiled along, and these methods cannot be.
    """
    return setting(_in_exception, True)


def use_stand_ins(found: Callable[[Value], Value]) -> None:
    """Take a function that finds what stands in for a callable: it rewrites sources, which is work of the compiler."""
    _found.append(found)


def see_through(decorator: Callable[..., Value]) -> Callable[..., Value]:
    """Return a decorator that caches as `decorator` does, but not for values of a lane, which are no keys."""
    return lambda fn: without_cache(decorator(fn), fn)


def without_cache(cached: Callable[..., Value], fn: Callable[..., Value]) -> Callable[..., Value]:
    @functools.wraps(fn, (), ())  # so that it is seen what the function has captured
    def run(*args: Value, **options: Value) -> Value:
        of_lane = any(isinstance(leaf, Tracer) for leaf in leaves((args, options)))
        return (fn if of_lane else cached)(*args, **options)

    return run


def load_attribute(value: Value, name: str) -> Value:
    """Return `value.name`; while a primitive is traced, the function of a property runs as a copy."""
    if isinstance(value, RECORDS):
        return questions.load_attribute(value, name, substitute)
    if isinstance(value, Optional):
        require(value.present, "AttributeError", f"'NoneType' object has no attribute '{name}'")
        return load_attribute(value.value, name)
    if isinstance(value, Tracer) and name in ATTRIBUTES:
        return part(value, name)
    require_attribute(value, name)
    if not is_noting() or isinstance(value, PLAIN) or package_of(type(value)) in LIBRARIES:
        return getattr(value, name)
    match inspect.getattr_static(type(value), name, None):
        case property(fget=FunctionType() as getter):
            return substitute(getter)(value)
        case functools.cached_property(func=FunctionType() as getter) if name not in vars(value):
            return substitute(getter)(value)
    return getattr(value, name)


def load_method(value: Value, name: str) -> Value:
    """Return `value.name`, which is called: a function of Python's own or of the user's, before it is copied."""
    if isinstance(value, RECORDS):
        return value.__getattr__(name)
    if isinstance(value, Optional):
        require(value.present, "AttributeError", f"'NoneType' object has no attribute '{name}'")
        return load_method(value.value, name)
    require_attribute(value, name)
    return getattr(value, name)


def method_of(value: Value, name: str) -> FunctionType | None:
    """Return the method of a value by which Python computes an operator; None if it is not a function of Python."""
    if isinstance(value, Ref):
        return own_method(value, name)
    method = inspect.getattr_static(type(value), name, None)
    return method if isinstance(method, FunctionType) else None


def users_method(value: Value, name: str) -> Value:
    """The copy of a method of the user's that Python would call itself; None if the class is not the user's."""
    method = method_of(value, name)
    if method is None or not (isinstance(value, Ref) or (is_noting() and is_user_code(method.__code__))):
        return None
    return substitute(method)


def users_setter(value: Value, name: str) -> Value:
    """The copy of the user's function that sets a property, with its object; None for other attributes."""
    owners = value.pcbatch_type.types if isinstance(value, Ref) else (type(value),)
    found = [inspect.getattr_static(cls, name, None) for cls in owners]
    setter = getattr(found[0], "fset", None) if found and isinstance(found[0], property) else None
    if not isinstance(setter, FunctionType) or any(one is not found[0] for one in found):
        return None
    if not isinstance(value, Ref) and not (is_noting() and is_user_code(setter.__code__)):
        return None
    return functools.partial(substitute(setter), value)


def iterated(value: Value) -> Value:
    """Return the list of what a method `__iter__` of the user's gives; other values as they are."""
    method = users_method(value, "__iter__")
    if method is None:
        return iterable(value)
    made = method(value)
    if users_method(made, "__next__") is not None:
        raise Asked
    try:
        return list(made)
    except Exception as error:
        raise Asked from error


def elements_of(value: Value) -> Value:
    """Return the list of the elements of an object of the user's, by a copy of its `__iter__`; other values as they
    are."""
    return value if users_method(value, "__iter__") is None else iterated(value)


def ask_for_elements(value: Value) -> None:
    """Have a loop over an object of the user's written out where its body may change what the object yields."""
    if isinstance(value, Ref) and value.pcbatch_id.shape == ():
        iter(value)
    elif users_method(value, "__iter__") is not None and inspect.isgeneratorfunction(type(value).__iter__):
        raise Asked


def iterable(value: Value, method: str = "__iter__") -> Value:
    """Return the list of the elements that an object gives by `__getitem__` alone; other values as they are.

    Python asks for one index after the other until one raises IndexError, which is known while tracing unless the lane
    has to check an index. `method` is one by which Python may do without.

    Raises:
        Refusal: the lane has to (PCB314).
    """
    get = users_method(value, "__getitem__")
    owners = value.pcbatch_type.types if isinstance(value, Ref) else (type(value),)
    by_index = [cls for cls in owners if not hasattr(cls, "__iter__") and not hasattr(cls, method)]
    if get is None or not by_index or (isinstance(value, Ref) and value.pcbatch_id.shape != ()):
        return value
    elements, ended = list[Value](), False
    with collecting() as checks, contextlib.suppress(jax.errors.ConcretizationTypeError):
        try:
            while len(elements) < MOST_BY_INDEX and not any(check.exception == "IndexError" for check in checks):
                elements.append(get(value, len(elements)))
        except IndexError:
            ended = True
    if ended:
        for check in checks:
            pass_on(check)
        return elements
    name = by_index[0].__name__
    title = f"the elements of an object of `{name}` are asked for by index until one raises IndexError"
    helps = (
        f"give `{name}` a method `__iter__` that yields the elements: `for x in self.xs: yield x`",
        "or go over the indices: `for k in range(len(a))`, with `a[k]`",
    )
    raise Refusal("PCB314", title, f"`{name}` has `__getitem__` and no `__iter__`", helps=helps)


def users_codes(value: Value, name: str) -> tuple[CodeType, ...]:
    """Return the codes of a method of the user's, one for each class that an object may be of and that has it."""
    several = isinstance(value, Ref) and len(value.pcbatch_type.types) > 1
    owners = [getattr(cls, name, None) for cls in value.pcbatch_type.types] if several else [method_of(value, name)]
    methods = [method for method in owners if isinstance(method, FunctionType)]
    return tuple(method.__code__ for method in methods if is_user_code(method.__code__))


def own_text(value: Value, *names: str) -> Value:
    """Return the text that the first of these methods of the user's makes of an object; None if it has none of them."""
    methods = (users_method(value, name) for name in names)
    method = next((method for method in methods if method is not None), None)
    if method is None and isinstance(value, Ref):
        found = [getattr(cls, name) for name in names[:1] for cls in value.pcbatch_type.types]
        if codes := [one.__code__ for one in found if isinstance(one, FunctionType) and is_user_code(one.__code__)]:
            title = f"the classes of {value.pcbatch_type} make their texts by methods of their own"
            raise Refusal("PCB320", title, helps=("make the text in a statement of its own",), functions=codes)
    return None if method is None else method(value)


# Effects: a primitive runs once, while compiling, so that it has none for each lane.


def print_(*args: Value, **options: Value) -> None:
    """Print outside of traces; raises Refusal (PCB305) while a primitive is traced."""
    if is_noting():
        title = "a helper prints, which each lane has to do by itself"
        reason = "what is traced runs once, while compiling"
        raise Refusal(
            "PCB305", title, reason, helps=("print in a function that the batched function calls by its name",)
        )
    builtins.print(*args, **options)


def kept_outside(value: Value) -> Value:
    """Return a value that goes into a container outside of a helper; raises Refusal (PCB305) if it is of a lane."""
    if is_noting() and any(isinstance(leaf, Tracer) for leaf in leaves(value)):
        title = "a helper keeps a value of the lane in an object outside of it"
        reason = "what is traced runs once, for all lanes"
        raise Refusal("PCB305", title, reason, helps=("pass what changes as an argument, and return it",))
    return value


def kept_in(owner: Any, value: Value) -> Value:
    """Return a value that becomes an attribute; raises Refusal if it is of a lane and `owner` existed before."""
    return kept_outside(value) if is_outside(owner) else value


# Default arguments that can be changed: Python makes `seen=[]` once, and all calls of the function share it. A traced
# function has its defaults anew in each primitive, so what one call leaves in them would be lost, and is refused.


KEPT = (list, dict, set, deque, Container)  # types of default arguments that a call may change
HELP = "let the default be None, and make the object in the function"


def defaults_of(fn: Callable[..., Value]) -> list[Value]:
    """Return the default arguments of a function that can be changed."""
    values = (*(getattr(fn, "__defaults__", None) or ()), *(getattr(fn, "__kwdefaults__", None) or {}).values())
    return [value for value in values if isinstance(value, KEPT)]


def same_defaults(fn: FunctionType, made_here: bool = False) -> FunctionType:
    """Return a function that refuses a change of its default arguments; the function itself if it has none to change.

    Args:
        fn: the function.
        made_here: whether the defaults are made where the function is traced, so that a result that holds one of them
            has no tie to what the next call finds. Such a result is refused as well.
    """
    kept = defaults_of(fn)
    if not kept:
        return fn

    def call(*args: Value, **options: Value) -> Value:
        before = [(value, value.copy()) for value in kept]
        result = fn(*args, **options)
        for value, old in before:
            if not _alike(_parts(value), _parts(old)):
                if not isinstance(value, Container):
                    value.clear()
                    (value.extend if isinstance(value, list | deque) else value.update)(old)
                title = f"`{fn.__name__}` changes a default argument, which all its calls share"
                raise Refusal("PCB330", title, helps=(HELP,))
        if made_here:
            held = Parts(result)
            if any(("object", id(value)) in held.own | held.inner for value in kept):
                title = f"`{fn.__name__}` gives a default argument away, which all its calls share"
                raise Refusal("PCB330", title, helps=(HELP,))
        return result

    functools.update_wrapper(call, fn)
    return cast(FunctionType, call)


def own_defaults(fn: FunctionType) -> FunctionType:
    """Decorate a nested function, whose default arguments are made where it is traced."""
    return same_defaults(fn, made_here=True)


def _alike(new: list[Value], old: list[Value]) -> bool:
    return len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))


def _parts(value: Value) -> list[Value]:
    if isinstance(value, Container):
        return jax.tree.leaves(value)
    return [part for pair in value.items() for part in pair] if isinstance(value, dict) else list(value)
