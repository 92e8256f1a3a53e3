"""Effects of code that is traced: a primitive runs once, while compiling, so that it has none for each lane."""

from __future__ import annotations

import builtins
from typing import Any

from pcbatch.data.origins import Tracer, is_noting, is_outside, leaves
from pcbatch.errors import Refusal


def print_(*args: Any, **options: Any) -> None:
    """Print outside of traces; raises Refusal (PCB305) while a primitive is traced."""
    if is_noting():
        raise Refusal(
            "PCB305",
            "a helper prints, which each lane has to do by itself",
            "what is traced runs once, while compiling",
            helps=("print in a function that the batched function calls by its name",),
        )
    builtins.print(*args, **options)


def kept_outside(value: Any) -> Any:
    """Return a value that goes into a container outside of a helper; raises Refusal (PCB305) if it is of a lane."""
    if is_noting() and any(isinstance(leaf, Tracer) for leaf in leaves(value)):
        raise Refusal(
            "PCB305",
            "a helper keeps a value of the lane in an object outside of it",
            "what is traced runs once, for all lanes",
            helps=("pass what changes as an argument, and return it",),
        )
    return value


def kept_in(owner: Any, value: Any) -> Any:
    """Return a value that becomes an attribute; raises Refusal if it is of a lane and `owner` existed before."""
    return kept_outside(value) if is_outside(owner) else value
