"""`pcbatch.batch` and what it returns."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from types import FunctionType, MethodType
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.arguments import Arguments, as_jax, prepare, signature, usage
from pcbatch.compiled import Compiled, compile_signature
from pcbatch.errors import PcbatchError
from pcbatch.frontend.target import Target
from pcbatch.inspection import Inspected
from pcbatch.ir.types import ArrayType
from pcbatch.lowered import Lowered
from pcbatch.lowering.jax_types import from_storage, settings, storage_type
from pcbatch.lowering.structure import flatten
from pcbatch.lowering.trace import inside_primitive
from pcbatch.mapping import run_map
from pcbatch.methods import BoundMethod, ClassMethod, method_options
from pcbatch.options import Options
from pcbatch.placement import asked, bare
from pcbatch.results import Result
from pcbatch.runtime.spread import Devices
from pcbatch.runtime.stream import Progress
from pcbatch.runtime.surroundings import no_mesh

_plainly: ContextVar[bool] = ContextVar("pcbatch_plainly", default=False)


class Batched(Inspected):
    """A function of one example, compiled to run on a batch. Made by `pcbatch.batch`.

    Calling it maps over the leading axis of every argument leaf (see `in_axes`), as `jax.vmap` would; every lane
    follows its own control flow.
    """

    def __init__(self, fn: FunctionType, options: Options) -> None:
        functools.update_wrapper(self, fn)
        self.fn: FunctionType = fn
        self.options = options
        self._cache: dict[Any, Compiled] = {}
        self._methods: dict[str, Batched] = {}

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method: the object is the first argument, the same for all lanes."""
        return self if instance is None else BoundMethod(self, instance)

    def for_methods(self, kind: str) -> Batched:
        """This function with a first parameter that is "constant" or "shared" by the lanes."""
        if kind not in self._methods:
            options = self.options
            changes = method_options(self.fn, options.in_axes, options.static_argnames, kind)
            self._methods[kind] = self.with_options(**changes)
        return self._methods[kind]

    def __repr__(self) -> str:
        return f"<pcbatch.Batched {self.fn.__qualname__}{signature(self.fn)}>"

    def __reduce__(self) -> str:
        """Copied and pickled as functions are: by name."""
        return str(self.__qualname__)  # type: ignore[attr-defined]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run every lane; the result has the lanes along the leading axis of every leaf.

        Raises:
            BatchRuntimeError: a lane failed (not inside `jit`: there it gives NaN, or the smallest integer).
            CompileError: the function cannot be compiled for these types.
            UsageError: arguments do not fit the signature, `in_axes`, or one another.
        """
        __tracebackhide__ = True  # pytest and IPython leave this frame out
        if _plainly.get():
            return self.fn(*args, **kwargs)
        try:
            mesh = self._mesh(kwargs)
            compiled, given = self._compiled(args, kwargs)
            outcome = compiled.execute(given, mesh)
            compiled.check(self.fn.__name__, outcome, given)
        except PcbatchError as error:
            raise error.with_traceback(None) from None  # it says all there is to say; our own frames add nothing
        return compiled.value(outcome)

    def run(self, /, *args: Any, **kwargs: Any) -> Result:
        """As a call, but lanes that fail are reported in `Result.status`; never raises for them. Works in `jit`."""
        __tracebackhide__ = True
        try:
            mesh = self._mesh(kwargs)
            compiled, given = self._compiled(args, kwargs)
            outcome = compiled.execute(given, mesh)
        except PcbatchError as error:
            raise error.with_traceback(None) from None
        return compiled.result(outcome, given.lanes)

    def map(
        self,
        /,
        *args: Any,
        lanes: int | None = None,
        chunk: int | None = None,
        progress: Progress | bool | None = None,
        **kwargs: Any,
    ) -> Result:
        """Run many inputs through a fixed number of lanes: a lane that is done takes the next input.

        For inputs whose runs differ in length this is faster than a lane for each: none waits for the longest.

        Args:
            *args, **kwargs: as in a call, the inputs along the mapped axes; `devices=` and `mesh=` as well. Or, alone,
                an iterator of chunks: each is a tuple of arguments as in a call (of one parameter: or that argument).
            lanes: of the machine on each device. None: 512.
            chunk: inputs that are sent to the devices at a time. None: all, unless they are NumPy arrays of more than
                256 MiB in all (then 64 MiB) or come in chunks. Results of chunks are arrays of NumPy.
            progress: called with the number of inputs that are done, and of all (None: not known yet), now and then
                and at the end; True for a bar of tqdm.

        Returns:
            A `Result` in the order of the inputs, with a status for each; like `run`, it does not raise for them.
        """
        __tracebackhide__ = True
        return self.map_with((), args, {**kwargs, "lanes": lanes, "chunk": chunk, "progress": progress})

    def map_with(self, fixed: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Result:
        """`map`, with arguments before the others that are the same for all inputs."""
        __tracebackhide__ = True
        try:
            options = {name: kwargs.pop(name, None) for name in ("lanes", "chunk", "progress")}
            return run_map(self, fixed, args, kwargs, mesh=self._mesh(kwargs), **options)
        except PcbatchError as error:
            raise error.with_traceback(None) from None

    def _mesh(self, kwargs: dict[str, Any]) -> Devices:
        """The devices of a call; takes them out of its keyword arguments, unless the function has such parameters."""
        return asked(signature(self.fn).parameters, kwargs, self.options.devices)

    def plain(self, /, *args: Any, **kwargs: Any) -> Any:
        """One example in plain Python; batched functions that it calls run plainly too.

        NumPy arrays among the arguments become arrays of JAX, as in a call of the batch.
        """
        args, kwargs = as_jax((args, kwargs))
        token = _plainly.set(True)
        try:
            return self.fn(*args, **kwargs)
        finally:
            _plainly.reset(token)

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """The compiled stages for these arguments (arrays or `jax.ShapeDtypeStruct`), like `jax.stages.Lowered`."""
        __tracebackhide__ = True
        try:
            mesh = self._mesh(kwargs)
            compiled, given = self._compiled(args, kwargs)
            return Lowered(self.fn, compiled, given, mesh=bare(compiled.placed(given, mesh)))
        except PcbatchError as error:
            raise error.with_traceback(None) from None

    def with_options(self, **changes: Any) -> Batched:
        """The same function with some options changed, as a new object with its own cache."""
        _check_names(changes)
        return _make(self.fn, replace(self.options, **changes))  # type: ignore[no-any-return]

    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Compiled, Arguments]:
        given = self.prepared(args, kwargs)
        return self.program(given), given

    def prepared(self, args: tuple[Any, ...], kwargs: dict[str, Any], host: bool = False) -> Arguments:
        """A call taken apart; see `pcbatch.arguments.prepare`."""
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

    def program(self, given: Arguments) -> Compiled:
        """The program for the types of a call."""
        key = (given.key, settings(), self.fn.__code__)  # reloading tools put new code into old functions
        compiled = self._cache.get(key)
        if compiled is None:
            with no_mesh():  # what is traced for one lane is kept, and used elsewhere
                compiled = compile_signature(self.fn, self._is_batched, self.options, given)
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


def batch(fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Compile a function of ONE example into one that runs a batch of them, every lane at its own pace.

    Use it as `@pcbatch.batch`, `@pcbatch.batch(max_depth=64)` or `pcbatch.batch(f)`.

    Args:
        fn: a plain Python function with `if`, `while`, `for`, early returns and recursion. Calls to other batched
            functions are calls per lane; calls to anything else are traced by JAX for one example.
        in_axes: as in `jax.vmap`: an int, None (shared by all lanes), a tuple with one pytree prefix per positional
            parameter, or a dict by parameter name. Arguments passed by keyword are mapped over axis 0 unless named.
        static_argnames: parameters that are compile-time constants (hashable), such as strings and functions.
        strategy: "pc" (program-counter autobatching, recursion inside one XLA program) or "local" (local static
            autobatching: lanes wait for each other at calls; recursion runs on the host).
        schedule: "auto", "earliest", "largest", "sweep", "drain", or a policy of your own: which block runs next. Never
            changes a result.
        emitter: "auto", "guard", "port" or "mask": how blocks are dispatched.
        modes: how blocks are computed (by "guard"): None (chosen by cost), a `pcbatch.Dense()`, `Few(width)` or
            `Strips(width)` for all, or a dict from a text in a block's source, or its label, to one of these.
        max_depth: frames that a lane may have open. A lane may make at least so many nested calls; a call that returns
            at once, or whose body was copied to where it is called, opens none. None: stacks grow as needed (inside
            `jit`: 64).
        max_steps: blocks that a lane may run before it ends with `Status.STEP_LIMIT`. None: no limit.
        devices: where lanes run: None (where they lie), a number, "all", devices of JAX, a mesh, or a sharding of the
            lanes. A call may say otherwise: `f(xs, devices=4)`, `f(xs, mesh=mesh)`. See docs/jax.md.
        stats: count visits and active lanes per block; see `Result.stats`.

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
            raise usage("PCB401", f"unknown option {name!r}", help=f"choose from {', '.join(known)}")


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


def inline(fn: Callable[..., Any]) -> Any:
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
    if isinstance(fn, staticmethod):
        return staticmethod(inline(fn.__func__))
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
    names = options.static_argnames
    if isinstance(names, str):
        options = replace(options, static_argnames=(names,))
    elif not isinstance(names, tuple | list):
        title = f"static_argnames must be a name or a tuple of names, not {names!r}"
        raise usage("PCB401", title, help='write `static_argnames="name"` or `static_argnames=("a", "b")`')
    unknown = [n for n in options.static_argnames if n not in signature(fn).parameters]
    if unknown:
        known = ", ".join(signature(fn).parameters)
        title = f"static_argnames names `{unknown[0]}`, which is not a parameter of {fn.__name__}"
        raise usage("PCB403", title, help=f"the parameters are {known}")
    return Batched(fn, options)
