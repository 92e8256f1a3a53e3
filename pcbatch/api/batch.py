"""`pcbatch.batch` and what it returns."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from threading import RLock
from types import FunctionType, MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import jax
import jax.numpy as jnp

from pcbatch.api.bound_method import BoundMethod, ClassMethod, method_options
from pcbatch.api.inspection import Inspected
from pcbatch.api.lowered import Lowered
from pcbatch.api.named import Named
from pcbatch.api.running import Runs
from pcbatch.api.staged import Staged
from pcbatch.call.arguments import Arguments, as_jax, checked_names, prepare, signature, usage
from pcbatch.compiler.program import Program, compile_signature
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import PcbatchError
from pcbatch.frontend.source.callee import Target
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.jax_types import from_storage, settings, storage_type
from pcbatch.lowering.typing.pytree import flatten
from pcbatch.lowering.typing.trace import inside_primitive
from pcbatch.options import Options
from pcbatch.report.lane_failures import raise_failures
from pcbatch.report.traced_failures import watched
from pcbatch.runtime.sharding.ambient_mesh import without_mesh

P = ParamSpec("P")  # the parameters of a function of one example
Q = ParamSpec("Q")  # those of a method, less its object
R = TypeVar("R", covariant=True)  # what it returns, for an example as for a batch of them
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_plainly: ContextVar[bool] = ContextVar("pcbatch_plainly", default=False)


class Batched(Runs, Staged, Inspected, Named, Generic[P, R]):
    """A function of one example, compiled to run on a batch. Made by `pcbatch.batch`.

    Calling it maps over the leading axis of every argument leaf (see `in_axes`), as `jax.vmap` would; every lane
    follows its own control flow.

    For type checkers it is generic: `Batched[P, R]` is made of a function with parameters P that returns R.
    """

    def __init__(self, fn: FunctionType, options: Options) -> None:
        functools.update_wrapper(self, fn)
        self.fn: FunctionType = fn
        self.options = options
        self._cache: dict[Any, Program] = {}
        self._methods: dict[str, Batched[P, R]] = {}
        self._compiling = RLock()

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Batched[P, R]: ...

    @overload
    def __get__(
        self: Batched[Concatenate[Any, Q], R], instance: object, owner: type | None = None
    ) -> BoundMethod[Q, R]: ...

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """As a method: the object is the first argument, the same for all lanes."""
        return self if instance is None else BoundMethod(self, instance)

    def for_methods(self, kind: str) -> Batched[P, R]:
        """This function with a first parameter that is "constant" or "shared" by the lanes."""
        with self._compiling:
            if kind not in self._methods:
                options = self.options
                changes = method_options(self.fn, options.in_axes, options.static_argnames, kind)
                self._methods[kind] = self.with_options(**changes)
            return self._methods[kind]

    def __repr__(self) -> str:
        return f"<pcbatch.Batched {self.fn.__qualname__}{signature(self.fn)}>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> R:
        """Run every lane; the result has the lanes along the leading axis of every leaf.

        Raises:
            BatchRuntimeError: a lane failed (not inside `jit`: there it gives NaN, or the smallest integer, and
                `on_failure` says what else happens).
            CompileError: the function cannot be compiled for these types.
            UsageError: arguments do not fit the signature, `in_axes`, or one another.

        `devices=`, `mesh=`, `timeout=`, `progress=`, `save_to=` and `every=` are as in `f.run`, unless they are
        parameters of the function.
        """
        __tracebackhide__ = True  # pytest and IPython leave this frame out
        if _plainly.get():
            return self.fn(*args, **kwargs)  # type: ignore[no-any-return]
        try:
            compiled, given, outcome = self._outcome(args, kwargs)
            raise_failures(self.fn.__name__, compiled, outcome, given)
            outcome = watched(compiled, self.fn.__name__, outcome)
        except PcbatchError as error:
            raise error.with_traceback(None) from None  # it says all there is to say; our own frames add nothing
        return compiled.value(outcome)  # type: ignore[no-any-return]

    def plain(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """One example in plain Python; batched functions that it calls run plainly too.

        NumPy arrays among the arguments become arrays of JAX, as in a call of the batch.
        """
        converted, named = as_jax((args, kwargs))
        token = _plainly.set(True)
        try:
            return self.fn(*converted, **named)  # type: ignore[no-any-return]
        finally:
            _plainly.reset(token)

    def with_options(self, **changes: Any) -> Batched[P, R]:
        """The same function with some options changed, as a new object with its own cache."""
        _check_names(changes)
        return _make(self.fn, replace(self.options, **changes))  # type: ignore[no-any-return]

    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Program, Arguments]:
        given = self.prepared(args, kwargs)
        return self.program(given), given

    def prepared(self, args: tuple[Any, ...], kwargs: dict[str, Any], host: bool = False) -> Arguments:
        """A call taken apart; see `pcbatch.call.arguments.prepare`."""
        if inside_primitive():
            called = self.fn.__qualname__.rpartition("<locals>.")[2]
            raise usage(
                "PCB412",
                f"batched function `{self.fn.__name__}` is called where the compiler does not see it",
                "a lane calls another batched function by its own name, a global or a closure variable",
                help=f"call `{called}(...)` in the batched function itself, or decorate the helper that calls it with "
                "`@pcbatch.inline`",
            )
        return prepare(self.fn, self.options, args, kwargs, host=host)

    def program(self, given: Arguments) -> Program:
        """The program for the types of a call."""
        compiled = self._typed(given)
        compiled.places()  # what is wrong with them is said before anything runs
        return compiled

    def _typed(self, given: Arguments, apart: frozenset[str] = frozenset()) -> Program:
        """The same for whatever is made of its results; `apart`: what lanes do not share of an outer trace."""
        key = (given.key, settings(), self.fn.__code__, apart)  # reloading tools put new code into old functions
        with self._compiling:  # threads that come meanwhile wait for it
            compiled = self._cache.get(key)
            if compiled is None:
                with without_mesh():  # what is traced for one lane is kept, and used elsewhere
                    compiled = compile_signature(self.fn, self._is_batched, self.options, given, self._typed, apart)
                if not compiled.captures:  # else it is good for this trace alone
                    self._cache[key] = compiled
            return compiled

    def _is_batched(self, obj: object) -> Target | None:
        match obj:
            case Batched():
                return Target(obj.fn)
            case Inline():
                return Target(obj.fn, inline=True)
            case BoundMethod():
                return Target(obj.batched.fn, (obj.instance,))
            case functools.partial():
                inner = self._is_batched(obj.func)
                if inner is None:
                    return None
                keywords = {**dict(inner.keywords), **obj.keywords}
                return replace(inner, args=(*inner.args, *obj.args), keywords=tuple(keywords.items()))
            case _:
                # `g = pcbatch.batch(f)`: f's own recursive calls name f.
                return Target(self.fn) if obj is self.fn else None

    def dump(self, stage: str, avals: Mapping[str, Any] | None, lanes: int, format: str = "text") -> str:
        """One stage as text, for given types per example (`ArrayType` leaves), or for none. Used by the CLI."""
        if avals is None:
            return Lowered.untyped(self.fn, self._is_batched).show(stage, format)
        args = {name: self._example(name, avals, lanes) for name in avals}
        return self.lower(**args).show(stage, format)

    def _example(self, name: str, avals: Mapping[str, Any], lanes: int) -> Any:
        shared = self.options.in_axes is None or (
            isinstance(self.options.in_axes, Mapping) and self.options.in_axes.get(name, 0) is None
        )
        if isinstance(self.options.in_axes, tuple | list):
            position = list(signature(self.fn).parameters).index(name)
            shared = position < len(self.options.in_axes) and self.options.in_axes[position] is None

        def zeros(t: ArrayType) -> Any:
            stored = storage_type(t)
            shape = stored.shape if shared else (lanes, *stored.shape)
            return from_storage(jnp.zeros(shape, stored.dtype), t)

        leaves, tree = flatten(avals[name])
        return jax.tree.unflatten(tree, [zeros(leaf) for leaf in leaves])


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
        strategy: "pc" (program-counter autobatching, recursion inside one XLA program) or "local" (local static
            autobatching: lanes wait for each other at calls; recursion runs on the host, at most 10,000 calls deep
            unless `max_depth` says otherwise).
        schedule: "auto", "earliest", "largest", "sweep", "drain", or a policy of your own: which block runs next. Never
            changes a result.
        emitter: "auto", "guard", "port" or "mask": how blocks are dispatched.
        modes: how blocks are computed (by "guard"): None (chosen by cost), a `pcbatch.Dense()`, `Few(width)` or
            `Strips(width)` for all, or a dict from a text in a block's source, or its label, to one of these.
        max_depth: frames that a lane may have open. A lane may make at least so many nested calls; a call that returns
            at once, or whose body was copied to where it is called, opens none. None: stacks grow as needed (inside
            `jit`: 64).
        max_steps: blocks that a lane may run before it ends with `Status.STEP_LIMIT`. None: no limit.
        max_tape: records of each block that a gradient inside `jit` has room for, for each lane on average. None: 256,
            or fewer of large records. Outside `jit` the tape grows unless this is set. See `f.tape`.
        checkpoints: states of the machine that a gradient keeps instead of a tape, running what is between them again.
        max_memory: bytes, or a text such as "8GB", that the state of a machine may take on each device. What would take
            more is refused before it is made, and stacks do not grow beyond it. None: half of what the device has.
        devices: where lanes run: None (where they lie), a number, "all", devices of JAX, a mesh, or a sharding of the
            lanes. A call may say otherwise: `f(xs, devices=4)`, `f(xs, mesh=mesh)`. See docs/users/jax.md.
        stats: count visits and active lanes per block; see `Result.stats`.
        on_failure: what a call inside `jit` does when lanes fail or the tape of a gradient is full: "warn" (once for a
            program), "error" or "ignore". None: as the environment says (PCBATCH_ON_FAILURE), else "warn", unless JAX's
            persistent cache is on, which keeps no programs that can warn. See docs/users/jax.md.

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
    _check_names(options)
    chosen = Options(**options)
    if fn is None:
        return lambda f: _make(f, chosen)
    return _make(fn, chosen)


def _check_names(options: Mapping[str, Any]) -> None:
    known = Options.__dataclass_fields__
    for name in options:
        if name not in known:
            raise usage("PCB401", f"unknown option {short(name)}", help=f"choose from {', '.join(known)}")


class Inline:
    """A function that the compiler copies into the batched functions that call it. Made by `pcbatch.inline`."""

    def __init__(self, fn: FunctionType) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<pcbatch.Inline {self.fn.__qualname__}>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The plain function."""
        return self.fn(*args, **kwargs)


def inline(fn: F) -> F:
    """Let batched functions call `fn`, whose `if`, `while` and `return` then follow each lane.

    Like `pcbatch.batch` on a helper, but it stays a plain function for everybody else, each call in a batched function
    has types of its own, and no stack is needed for it. It must not call itself.

    Example:
        >>> @pcbatch.inline
        ... def clip(x, limit):
        ...     if x > limit:
        ...         return limit
        ...     return x
        >>> @pcbatch.batch
        ... def f(x):
        ...     return clip(x, 1.0) + clip(2 * x, 3.0)
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
    """The elements as a tuple, so that a `for` loop over them is copied once per element by the compiler.

    A loop over an array or a `range` stays a loop; use this where the body needs the number or the element while
    compiling, or is so short that a loop costs more than its work.

    Example:
        >>> @pcbatch.batch
        ... def horner(x):
        ...     y = 0.0
        ...     for c in pcbatch.unroll((3.0, 2.0, 1.0)):
        ...         y = y * x + c
        ...     return y
    """
    return tuple(iterable)


def _what_to_decorate(fn: Any) -> str:
    """How to get at the function that was meant."""
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
    if isinstance(fn, staticmethod):
        return staticmethod(_make(fn.__func__, options))
    if isinstance(fn, classmethod):
        return ClassMethod(_make(fn.__func__, options))
    if isinstance(fn, Batched | Inline):
        fn = fn.fn
    if not isinstance(fn, FunctionType):
        raise usage(
            "PCB409",
            f"pcbatch.batch needs a Python function, not {type(fn).__name__}",
            help=_what_to_decorate(fn),
        )
    return Batched(fn, checked_names(fn, options))
