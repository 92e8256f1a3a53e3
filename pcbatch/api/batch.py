"""`pcbatch.batch`, `pcbatch.inline`, `pcbatch.unroll` and `pcbatch.primitive`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields
from types import FunctionType, MethodType
from typing import Any, ParamSpec, TypeVar, overload

from pcbatch.api.batched import Batched, BoundMethod, ClassMethod
from pcbatch.api.inlined import Inline
from pcbatch.api.old_names import with_new_names
from pcbatch.call.signature import checked_names
from pcbatch.call.usage import usage
from pcbatch.frontend.source.helpers import keep_primitive
from pcbatch.options import Options

P = ParamSpec("P")  # the parameters of a function of one example
R = TypeVar("R", covariant=True)  # what it returns, for an example as for a batch of them
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


@overload
def batch(fn: None = None, /, **options: Any) -> Callable[[Callable[P, R]], Batched[P, R]]: ...


@overload
def batch(fn: Batched[P, R], /, **options: Any) -> Batched[P, R]: ...


@overload
def batch(fn: staticmethod[P, R], /, **options: Any) -> staticmethod[P, R]: ...


@overload
def batch(fn: classmethod[T, P, R], /, **options: Any) -> classmethod[T, P, R]: ...


@overload
def batch(fn: Callable[P, R], /, **options: Any) -> Batched[P, R]: ...


def batch(fn: Any = None, /, **options: Any) -> Any:
    """Compile a function of ONE example into one that runs a batch of them, every lane at its own pace.

    Use it as `@pcbatch.batch`, `@pcbatch.batch(max_depth=64)` or `pcbatch.batch(f)`.

    Args:
        fn: a plain Python function with `if`, `while`, `for`, early returns and recursion. Calls to other batched
            functions are calls per lane; calls to anything else are traced by JAX for one example.
        in_axes: as in `jax.vmap`: an int, None (shared by all lanes), a tuple with one pytree prefix per positional
            parameter, or a dict by parameter name. Arguments passed by keyword are mapped over axis 0 unless named.
        out_axes: as in `jax.vmap`: the axis of the lanes in each leaf of the result, an int or a pytree prefix; None
            for what is the same for all lanes.
        static_argnames: parameters that are compile-time constants (hashable), such as strings and functions.
        donate_argnames: parameters whose arrays a call may use up, as in `jax.jit`: it can write its results over them.
        devices: where lanes run: None (where they lie), a number, "all", devices of JAX, a mesh, or a sharding of the
            lanes. A call may say otherwise: `f(xs, devices=4)`, `f(xs, mesh=mesh)`. See docs/users/jax.md.
        stats: count visits and active lanes per block; see `Result.stats`.
        on_failure: what a call inside `jit` does when lanes fail or the tape of a gradient is full: "warn" (once for a
            program), "error" or "ignore". None: as the environment says (PCBATCH_ON_FAILURE), else "warn" for lanes and
            "error" for tapes, unless JAX's persistent cache is on, which keeps no programs that can say anything. See
            docs/users/jax.md.
        strategy: "pc" (program-counter autobatching, recursion inside one XLA program) or "local" (local static
            autobatching: lanes wait for each other at calls; recursion runs on the host, at most 10,000 calls deep
            unless `max_depth` says otherwise).
        max_depth: frames that a lane may have open. A lane may make at least as many nested calls; a call that returns
            at once, or whose body was copied to where it is called, opens none. None: stacks grow as needed (inside
            `jit`: 64).
        max_steps: blocks that a lane may run before it ends with `Status.STEP_LIMIT`. None: no limit.
        max_length: elements that lists, dicts and sets of a lane may have, and characters of its texts (rounded up to a
            power of two); a lane that needs more ends with `Status.LIST_FULL`. None: they grow as needed (inside
            `jit`: 32).
        max_tape: records of each block that a gradient inside `jit` has room for, for each lane on average. None: 256,
            or fewer of large records. Outside `jit` the tape grows unless this is set. See `f.tape`.
        max_memory: bytes, or a text such as "8GB", that the state of a machine may take on each device. A larger state
            is refused before it is made, and stacks do not grow beyond it. None: half of what the device has.
        checkpoints: states of the machine that a gradient keeps instead of a tape, running the trips between
            them again.
        plan: a `pcbatch.Plan`: all of how the program runs that changes no value, such as which block runs next.
        numbers: whose numbers. "python": an integer of Python that leaves the range of its dtype ends its lane with
            `Status.LIMIT`, and a function of `math` raises where Python's does; "jax": the integer wraps around, and
            the function gives NaN or infinity. Functions such as `math.comb` fail in any case.

    Returns:
        A `Batched`. The algorithm is that of Radul et al., "Automatically Batching Control-Intensive Programs for
        Modern Accelerators", MLSys 2020: section 3 for "pc", section 2 for "local".

    Raises:
        UsageError: an unknown or ill-typed option, or something that is not a Python function.

    Example:
        >>> import jax.numpy as jnp, pcbatch
        >>> @pcbatch.batch
        ... def fib(n):
        ...     if n <= 1:
        ...         return 1
        ...     return fib(n - 2) + fib(n - 1)
        >>> fib(jnp.array([3, 7, 4, 5]))
        Array([ 3, 21,  5,  8], dtype=int32, weak_type=True)
    """
    chosen = Options(**with_new_names(options, Options()))
    if fn is None:
        return lambda f: _make(f, chosen)
    return _make(fn, chosen)


def _signature() -> inspect.Signature:
    """The signature of `batch` for people: options and their defaults stand in `Options`, names of the earlier release
    come in `**old`."""
    kinds = inspect.Parameter
    function = kinds("fn", kinds.POSITIONAL_ONLY, default=None)
    options = [kinds(f.name, kinds.KEYWORD_ONLY, default=f.default, annotation=f.type) for f in fields(Options)]
    return inspect.Signature([function, *options, kinds("old", kinds.VAR_KEYWORD)])


batch.__signature__ = _signature()  # type: ignore[attr-defined]


def inline(fn: F) -> F:
    """Let batched functions call `fn`, whose `if`, `while` and `return` then follow each lane.

    Like `pcbatch.batch` on a helper, but it stays a plain function for all other callers, each call in a batched
    function has types of its own, and no stack is needed for it. It must not call itself.

    Args:
        fn: a plain Python function, a batched one, or a `staticmethod` of one.

    Returns:
        The function, which is called as before.

    Raises:
        UsageError: something that is not a Python function.

    Example:
        >>> import jax.numpy as jnp, pcbatch
        >>> @pcbatch.inline
        ... def clip(x, limit):
        ...     if x > limit:
        ...         return limit
        ...     return x
        >>> @pcbatch.batch
        ... def f(x):
        ...     return clip(x, 1.0) + clip(2 * x, 3.0)
        >>> f(jnp.array([0.5, 2.0])).tolist()
        [1.5, 4.0]
    """
    return _inlined(fn)  # type: ignore[no-any-return]


def _inlined(fn: Any) -> Any:
    if isinstance(fn, staticmethod):
        return staticmethod(_inlined(fn.__func__))
    if isinstance(fn, Batched | Inline):
        fn = fn.fn
    if not isinstance(fn, FunctionType):
        title = f"pcbatch.inline needs a Python function, not {type(fn).__name__}"
        raise usage("PCB409", title, help="decorate a `def`, which may call it")
    return Inline(fn)


def unroll(iterable: Iterable[Any]) -> tuple[Any, ...]:
    """Return the elements as a tuple, so that a `for` loop over them is copied once per element by the compiler.

    A loop over an array or a `range` stays a loop; use this where the body needs the number or the element while
    compiling, or is so short that a loop costs more than its work.

    Args:
        iterable: of a length that is known while compiling.

    Example:
        >>> import jax.numpy as jnp, pcbatch
        >>> @pcbatch.batch
        ... def horner(x):
        ...     y = 0.0
        ...     for c in pcbatch.unroll((3.0, 2.0, 1.0)):
        ...         y = y * x + c
        ...     return y
        >>> horner(jnp.array([0.0, 1.0])).tolist()
        [1.0, 6.0]
    """
    return tuple(iterable)


def _what_to_decorate(fn: Any) -> str:
    """A help that says how to get at the function that was meant."""
    match fn:
        case MethodType() | BoundMethod():
            return "write `@pcbatch.batch` above its `def` in the class, and call it as before"
        case functools.partial():
            return "batch the function in it, and fix its arguments with `static_argnames` or `in_axes=None`"
        case type():
            return "decorate methods of the class, each by itself"
        case property():
            return "make it a method with an argument that differs between lanes"
        case _ if inspect.isfunction(getattr(fn, "__wrapped__", None)):
            return "batch the function itself, before another decorator wraps it"
        case _:
            return "decorate a `def`; wrap a callable object or a builtin in a function of your own"


def _make(fn: Any, options: Options) -> Any:
    """Batch a function, or that in a `staticmethod` or `classmethod`."""
    if isinstance(fn, staticmethod):
        return staticmethod(_make(fn.__func__, options))
    if isinstance(fn, classmethod):
        return ClassMethod(_make(fn.__func__, options))
    if isinstance(fn, Batched | Inline):
        fn = fn.fn
    if not isinstance(fn, FunctionType):
        raise usage(
            "PCB409", f"pcbatch.batch needs a Python function, not {type(fn).__name__}", help=_what_to_decorate(fn)
        )
    return Batched(fn, checked_names(fn, options))


def primitive(fn: F) -> F:
    """Keep calls of `fn` in batched functions one operation, which JAX traces for one example.

    A function without a decorator is traced where that works, and compiled along, as if it were decorated with
    `pcbatch.batch`, where it branches on values of the lane or calls itself. Under this decorator it is never compiled:
    what tracing cannot do is an error.

    Args:
        fn: a plain Python function, or a `staticmethod` of one.

    Returns:
        The function itself.

    Raises:
        UsageError: something that is not a Python function.

    Example:
        >>> import jax.numpy as jnp, pcbatch
        >>> @pcbatch.primitive
        ... def norm(x):
        ...     return jnp.sqrt(jnp.sum(x * x))
        >>> @pcbatch.batch
        ... def f(x):
        ...     return x / norm(x) if norm(x) > 1 else x
        >>> f(jnp.array([[3.0, 4.0]])).tolist()
        [[0.6000000238418579, 0.800000011920929]]
    """
    inner = fn.__func__ if isinstance(fn, staticmethod) else fn
    if not isinstance(inner, FunctionType):
        title = f"pcbatch.primitive needs a Python function, not {type(inner).__name__}"
        raise usage("PCB409", title, help="decorate a `def`, which may call it")
    keep_primitive(inner)
    return fn
