"""`Batched`: a batched function, and the same as a method of an object."""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from pcbatch.api.asks import Asks
from pcbatch.api.inlined import Inline
from pcbatch.api.programs import Programs
from pcbatch.api.public import public
from pcbatch.api.reports import Reports
from pcbatch.api.stages import Lowered, Traced, avals_of
from pcbatch.call.placement import without_explicit_axes
from pcbatch.call.plain_arguments import plain_arguments
from pcbatch.call.signature import checked_names, signature
from pcbatch.contexts import plainly, setting
from pcbatch.frontend import assigned_items
from pcbatch.frontend.source.callee import Target
from pcbatch.options import Options

P = ParamSpec("P")  # the parameters of a function of one example
Q = ParamSpec("Q")  # those of a method, less its object
R = TypeVar("R", covariant=True)  # what it returns, for an example as for a batch of them
T = TypeVar("T")

KEPT = 16
"""The number of objects with other options that a batched function knows."""


class Batched(Asks[P, R], Reports):
    """A function of one example, compiled to run on a batch. Made by `pcbatch.batch`.

    Calling it maps over the leading axis of every argument leaf (see `in_axes`), as `jax.vmap` would; every lane
    follows its own control flow. It never changes: a copy of it is the object itself, and it is pickled by its name,
    as functions are, without its compiled programs.

    For type checkers it is generic: `Batched[P, R]` is made of a function with parameters P that returns R.
    """

    __name__: str  # the function's

    def __init__(self, fn: FunctionType, options: Options) -> None:
        functools.update_wrapper(self, fn)
        self.fn: FunctionType = fn
        self.options = options
        self._programs = Programs(fn, options, functools.partial(_target_of, fn))
        self._variants: deque[Batched[P, R]] = deque(maxlen=KEPT)

    def trace(self, /, *args: Any, **kwargs: Any) -> Traced:
        """Trace the function for these arguments, as `jax.jit(f).trace` does.

        Args:
            *args, **kwargs: as in a call; `jax.ShapeDtypeStruct`s are enough. Nothing is run.

        Returns:
            A `Traced`, like `jax.stages.Traced`: `.jaxpr`, the types of arguments and result, `.lower()`.

        Raises:
            CompileError, UsageError: as in a call.

        Example:
            >>> f.trace(jax.ShapeDtypeStruct((8,), "int32")).out_info  # doctest: +SKIP
        """
        __tracebackhide__ = True
        lowered = self.lower(*args, **kwargs)
        return Traced(lowered.avals, lowered)

    @public
    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """Compile the function for these arguments as far as XLA, as `jax.jit(f).lower` does.

        Args:
            *args, **kwargs: as in a call; `jax.ShapeDtypeStruct`s are enough. Nothing is run.

        Returns:
            A `Lowered`, like `jax.stages.Lowered`: `.as_text(stage)`, the types of arguments and result, `.compile()`.

        Raises:
            CompileError, UsageError: as in a call.

        Example:
            >>> import jax, pcbatch
            >>> @pcbatch.batch
            ... def double(x):
            ...     return 2 * x
            >>> lowered = double.lower(jax.ShapeDtypeStruct((8,), "float32"))
            >>> print(lowered.as_text("cfg").strip())
            pcir 1 cfg
            func @double(x: f32[]) -> (r: f32[]) {
            bb0:
              r = { 2 * x }
              return
            }
            >>> lowered.out_info
            ShapeDtypeStruct(shape=(8,), dtype=float32)
        """
        devices = self._programs.pop_devices(kwargs)
        program, call = self._programs.of_call(args, kwargs, repeats=False)
        avals = avals_of(program, call.lanes, signature(self.fn), (*self._programs.fixed, *args), kwargs)
        return Lowered(avals, self.fn, program, call, without_explicit_axes(program.placed(call, devices)))

    def plain(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run one example in plain Python; batched functions that it calls run plainly too.

        Args:
            *args, **kwargs: of one example, without an axis of lanes. Arrays of NumPy among them become arrays of JAX,
                as in a call of the batch; but arrays of a parameter to whose items the function assigns become
                copies of NumPy, which allow it. A `Ragged` becomes a list of lists.

        Returns:
            The value that the function itself returns.

        Raises:
            Exception: what the function raises.

        Example:
            >>> import pcbatch
            >>> @pcbatch.batch
            ... def fib(n):
            ...     return n if n < 2 else fib(n - 2) + fib(n - 1)
            >>> fib.plain(10)
            55
        """
        converted, named = plain_arguments(self.fn, args, kwargs, assigned_items(self.fn))
        with setting(plainly, True):
            return self.fn(*converted, **named)  # type: ignore[no-any-return]

    def with_options(self, **changes: Any) -> Batched[P, R]:
        """Change some options, in another object that shares no compiled program with this one.

        The same changes give the same object again, with its compiled programs: the last 16 are kept. No changes give a
        new object each time.

        Args:
            **changes: options of `pcbatch.batch`; the others stay as they are.

        Returns:
            A `Batched` of the same function.

        Raises:
            UsageError: an unknown or ill-typed option.

        Example:
            >>> checked = f.with_options(max_steps=10_000, stats=True)  # doctest: +SKIP
        """
        options = self._programs.with_options(**changes).options
        known = tuple(self._variants) if changes else ()
        found = next((kept for kept in known if _are_equal(kept.options, options)), None)
        if found is not None:
            return found
        made = Batched[P, R](self.fn, options)
        if changes:
            self._variants.append(made)
        return made

    def _of_method(self, instance: object) -> Batched[..., R]:
        """This function with `instance` before the arguments of every call."""
        bound: Batched[..., R] = object.__new__(Batched)
        vars(bound).update(vars(self), _programs=self._programs.of_method(instance))
        return bound

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Batched[P, R]: ...

    @overload
    def __get__(
        self: Batched[Concatenate[Any, Q], R], instance: object, owner: type | None = None
    ) -> BoundMethod[Q, R]: ...

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind the function to an object, its first argument, which is the same for all lanes."""
        return self if instance is None else BoundMethod(self, instance)

    def __repr__(self) -> str:
        return f"<pcbatch.Batched {self.fn.__qualname__}{signature(self.fn)}>"

    def __copy__(self) -> Batched[P, R]:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Batched[P, R]:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle by the name that the module has for it.

        One made of the object of that name, by `with_options` or by `g = pcbatch.batch(f)`, is pickled as that object
        and the options.
        """
        named = _by_name(self.fn.__module__, self.fn.__qualname__)
        plain = named.fn if isinstance(named, Batched) else named
        if named is self or plain is not self.fn:
            return str(self.fn.__qualname__)  # pickle itself refuses a name that is not there
        return _again, (named, self.options)


def _by_name(module: str, path: str) -> Any:
    value: Any = sys.modules.get(module)
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def _again(named: Any, options: Options) -> Batched[..., Any]:
    """Unpickle a function with its own options."""
    fn = named.fn if isinstance(named, Batched) else named
    return Batched(fn, checked_names(fn, replace(options)))


def _forwarded(
    method: Callable[Concatenate[Batched[..., Any], Q], T],
) -> Callable[Concatenate[BoundMethod[..., Any], Q], T]:
    """A method of `Batched` as one of `BoundMethod`: the object comes before the arguments."""

    @functools.wraps(method)
    def forward(bound: BoundMethod[..., Any], /, *args: Q.args, **kwargs: Q.kwargs) -> T:
        __tracebackhide__ = True
        return method(bound.batched._of_method(bound.instance), *args, **kwargs)

    return forward


def _are_equal(one: Options, other: Options) -> bool:
    """Whether two sets of options are equal; those that hold arrays are only equal to themselves."""
    try:
        return one is other or one == other
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)  # `jax.jit` keeps weak references
class BoundMethod(Generic[P, R]):
    """A batched function with its first argument, the object of a method. Has the methods of a `Batched`.

    The object is the same for all lanes. One that JAX knows as a pytree gives its arrays, shared by the lanes; any
    other is a constant of the compiled program (and must be hashable), so that `self.step(x)` calls a batched method.
    """

    batched: Batched[..., R]
    instance: Any

    def __call__(self, /, *args: Any, **kwargs: Any) -> R:
        """Run every lane, as `Batched.__call__`."""
        __tracebackhide__ = True
        return self.batched._of_method(self.instance)(*args, **kwargs)

    def plain(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run one example in plain Python, as `Batched.plain`."""
        return self.batched.plain(self.instance, *args, **kwargs)

    def with_options(self, **changes: Any) -> BoundMethod[P, R]:
        """Change some options, as `Batched.with_options`."""
        return BoundMethod(self.batched.with_options(**changes), self.instance)

    run = _forwarded(Batched.run)
    map = _forwarded(Batched.map)
    ask = _forwarded(Batched.ask)
    start = _forwarded(Batched.start)
    load = _forwarded(Batched.load)
    explain_schedule = _forwarded(Batched.explain_schedule)
    profile = _forwarded(Batched.profile)
    tape = _forwarded(Batched.tape)
    tune = _forwarded(Batched.tune)
    trace = _forwarded(Batched.trace)
    lower = _forwarded(Batched.lower)


class ClassMethod(classmethod):  # type: ignore[type-arg]
    """A batched classmethod, as `pcbatch.batch` makes it. (Python's own binds plain functions only.)"""

    def __get__(self, instance: Any, owner: type | None = None) -> BoundMethod[..., Any]:
        """Bind the function to the class, its first argument, which is the same for all lanes."""
        return BoundMethod(self.__func__, type(instance) if owner is None else owner)  # type: ignore[arg-type]


def _target_of(fn: FunctionType, obj: object) -> Target | None:
    """The function that a call of `obj` inside the batched `fn` runs per lane; None: JAX traces the call."""
    match obj:
        case Batched():
            return Target(obj.fn)
        case Inline():
            return Target(obj.fn, inline=True)
        case BoundMethod():
            return Target(obj.batched.fn, (obj.instance,))
        case functools.partial():
            inner = _target_of(fn, obj.func)
            if inner is None:
                return None
            keywords = {**dict(inner.keywords), **obj.keywords}
            return replace(inner, args=(*inner.args, *obj.args), keywords=tuple(keywords.items()))
        case _:
            # `g = pcbatch.batch(f)`: f's own recursive calls name f.
            return Target(fn) if obj is fn else None
