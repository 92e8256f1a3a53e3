"""The errors of primitives that lanes cannot compute, and the questions whether one is such a primitive."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any

import jax
import jax.extend.core as jex

from pcbatch.containers.lane_iterator import LaneIterator
from pcbatch.errors import Refusal

COLLECTIVE = (
    "this is a collective of devices, and each lane runs at its own pace",
    "call it on the results of all lanes: `jax.lax.psum(f(xs), axis)`",
)


class TraceError(Refusal):
    """Error of a primitive that lanes cannot compute; `cause` is the text, `helps` say what to write instead."""

    def __init__(self, cause: str, *helps: str) -> None:
        super().__init__("PCB304", cause, helps=helps)


class ChangedArgument(TraceError):
    """Error of a primitive that changes one of its arguments; as a function of the program it may do so."""


def refuse_effects(closed: jex.ClosedJaxpr) -> None:
    """Refuse a primitive that has effects, asks other devices, or sorts as JAX cannot lower it."""
    # The class of this effect is not public in JAX.
    if any(type(effect).__name__ == "NamedAxisEffect" for effect in closed.effects):
        raise TraceError(*COLLECTIVE).with_traceback(_origin(closed))
    if closed.effects:
        error = TraceError(
            "this has a side effect, which would also run for lanes that are elsewhere",
            "print in a statement of the batched function itself; return what is to be saved",
        )
        raise error.with_traceback(_origin(closed))
    # JAX traces a sort as `np.argsort` asks for it, and fails only when it lowers it, by a raw TypeError.
    unsorted = next((eqn for eqn in _equations(closed.jaxpr) if eqn.params.get("is_stable", False) is None), None)
    if unsorted is not None:
        title = "`argsort` of NumPy hands on to JAX what JAX does not know"
        help = "write `jnp.argsort` in place of `np.argsort`, also in what is called here"
        raise Refusal("PCB306", title, helps=(help,)).with_traceback(_traceback(unsorted))


def _equations(jaxpr: jex.Jaxpr) -> Iterator[Any]:
    """Yield the equations of a jaxpr, and those of the jaxprs in their parameters."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jax.tree.leaves(list(eqn.params.values())):
            if isinstance(inner, jex.ClosedJaxpr | jex.Jaxpr):
                yield from _equations(inner.jaxpr if isinstance(inner, jex.ClosedJaxpr) else inner)


def _origin(closed: jex.ClosedJaxpr) -> TracebackType | None:
    """The traceback of the first operation with a side effect."""
    eqn = next((eqn for eqn in closed.jaxpr.eqns if eqn.effects), None)
    return None if eqn is None else _traceback(eqn)


def _traceback(eqn: Any) -> TracebackType | None:
    """The traceback of the call that recorded an equation."""
    recorded = eqn.source_info.traceback
    traceback: TracebackType | None = None if recorded is None else recorded.as_python_traceback()
    return traceback


def check_not_iterator(value: Any) -> None:
    """Refuse an iterator among the results of a primitive."""
    if isinstance(value, Iterator) and not isinstance(value, LaneIterator):
        raise TraceError(
            f"an iterator ({type(value).__name__}) cannot be kept in a variable of a lane",
            "if it ends, keep one over the list of its elements, `iter(list(...))`, "
            "or use it in the expression that makes it",
        )


def check_not_mutated(before: list[tuple[list[Any], Any]], after: list[tuple[list[Any], Any]]) -> None:
    """Refuse a change of an argument, whose leaves and structure are given before and after a primitive."""
    for (old, old_tree), (new, new_tree) in zip(before, after, strict=True):
        if old_tree != new_tree or any(a is not b for a, b in zip(old, new, strict=True)):
            raise ChangedArgument(
                "a list, a dict or an object of this lane is changed in place where it is traced",
                "change it in a statement of its own, or in a function that is called there; a `defaultdict` is "
                "changed by `d[k]`, too: read it by `d.get(k, 0)`, with its default",
            )
