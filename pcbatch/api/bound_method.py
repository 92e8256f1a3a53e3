"""Batched methods: `@pcbatch.batch` on a method, called on an object.

The object is the same for all lanes. One that JAX knows as a pytree gives its arrays, shared by the lanes; any other
is a constant of the compiled program (and must be hashable), so that `self.step(x)` is a call of a batched method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import jax

from pcbatch.call.arguments import signature

if TYPE_CHECKING:
    from pcbatch.api.batch import Batched
    from pcbatch.api.lowered import Lowered
    from pcbatch.api.traced import Traced
    from pcbatch.call.results import Result
    from pcbatch.report.profile import Profile
    from pcbatch.report.schedule import Explanation
    from pcbatch.runs.run_handle import Machine

P = ParamSpec("P")  # the parameters of a method, less its object
R = TypeVar("R", covariant=True)  # what it returns


@dataclass(frozen=True, slots=True, eq=False)
class BoundMethod(Generic[P, R]):
    """A batched function with its first argument; has the methods of a `Batched`."""

    batched: Batched[..., R]
    instance: Any

    def __call__(self, /, *args: Any, **kwargs: Any) -> R:
        """Run every lane."""
        __tracebackhide__ = True
        return self._ready()(self.instance, *args, **kwargs)

    def run(self, /, *args: Any, **kwargs: Any) -> Result:
        """As `Batched.run`."""
        __tracebackhide__ = True
        return self._ready().run(self.instance, *args, **kwargs)

    def map(self, /, *args: Any, **kwargs: Any) -> Result:
        """As `Batched.map`."""
        __tracebackhide__ = True
        return self._ready().map_with((self.instance,), args, kwargs)

    def start(self, /, *args: Any, **kwargs: Any) -> Machine:
        """As `Batched.start`."""
        __tracebackhide__ = True
        return self._ready().start(self.instance, *args, **kwargs)

    def load(self, path: Any, /, *args: Any, **kwargs: Any) -> Machine:
        """As `Batched.load`."""
        __tracebackhide__ = True
        return self._ready().load_with((self.instance,), path, args, kwargs)

    def explain_schedule(self, /, *args: Any, **kwargs: Any) -> Explanation:
        """As `Batched.explain_schedule`."""
        __tracebackhide__ = True
        return self._ready().explain_schedule(self.instance, *args, **kwargs)

    def profile(self, /, *args: Any, **kwargs: Any) -> Profile:
        """As `Batched.profile`."""
        __tracebackhide__ = True
        return self._ready().profile(self.instance, *args, **kwargs)

    def plain(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """As `Batched.plain`."""
        return self.batched.plain(self.instance, *args, **kwargs)

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """As `Batched.lower`."""
        __tracebackhide__ = True
        return self._ready().lower(self.instance, *args, **kwargs)

    def trace(self, /, *args: Any, **kwargs: Any) -> Traced:
        """As `Batched.trace`."""
        __tracebackhide__ = True
        return self._ready().trace(self.instance, *args, **kwargs)

    def with_options(self, **changes: Any) -> BoundMethod[P, R]:
        """As `Batched.with_options`."""
        return BoundMethod(self.batched.with_options(**changes), self.instance)

    def _ready(self) -> Batched[..., R]:
        """The function whose first parameter is not mapped over lanes."""
        opaque = jax.tree_util.treedef_is_leaf(jax.tree.structure(self.instance))
        return self.batched.for_methods("constant" if opaque else "shared")


class ClassMethod(classmethod):  # type: ignore[type-arg]
    """What `pcbatch.batch` makes of a classmethod: a batched method of the class. (Python's own binds no others.)"""

    def __get__(self, instance: Any, owner: type | None = None) -> BoundMethod[..., Any]:
        """The class is the first argument, the same for all lanes."""
        return BoundMethod(self.__func__, type(instance) if owner is None else owner)  # type: ignore[arg-type]


def method_options(fn: Any, in_axes: Any, static_argnames: tuple[str, ...], kind: str) -> dict[str, Any]:
    """The options of a function whose first parameter is the object of a method."""
    first, *rest = signature(fn).parameters
    if kind == "constant":
        return {"static_argnames": (first, *(name for name in static_argnames if name != first))}
    if in_axes is None or isinstance(in_axes, int):
        return {"in_axes": dict.fromkeys(rest, in_axes) | {first: None}}
    return {"in_axes": {**in_axes, first: None}} if isinstance(in_axes, Mapping) else {}
