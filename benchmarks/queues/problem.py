"""What a problem is: the plain function of one example, and the same loop written by hand for the peers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple


class Loop(NamedTuple):
    """`while live(state): state = step(state)` from `init(*inputs)`, for one example and with selections for `if`.

    What `jax.vmap` of a `lax.while_loop` needs. The arithmetic is that of the plain function: both call the same
    helpers.
    """

    init: Callable[..., Any]
    live: Callable[[Any], Any]
    step: Callable[[Any], Any]
    out: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. Every way to solve it gives `(answer, steps)` for each input."""

    name: str
    title: str
    solve: Callable[..., Any]  # plain Python, one example
    inputs: Callable[[int], tuple[Any, ...]]  # so many examples
    loop: Loop
    size: int  # how many inputs are measured
    goal: float  # time of the best peer over ours
    tolerance: float = 1e-3  # of an answer, relative and absolute
    library: tuple[str, Callable[[], Callable[..., Any]]] | None = None  # the field's own: (module, its solver)
