"""The rules about numbers of Python in the program being compiled: which faults of arithmetic end a lane.

    with using(NumberRules(overflow="wrap")): ...

Lanes compute with numbers of a fixed width, Python with integers of any size, and JAX gives infinity or NaN where
Python raises. The compiler sets the rules from the options of the batched function.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from pcbatch.contexts import setting


@dataclass(frozen=True, slots=True)
class NumberRules:
    """The rules that are in force while a primitive is traced.

    Attributes:
        overflow: "fail" where an integer of Python leaves the range of its dtype, or "wrap".
        math_errors: "raise" where a function of `math` raises, or "nan" for what JAX gives there.
        division: whether a division of Python's numbers by zero raises.
    """

    overflow: str = "fail"
    math_errors: str = "raise"
    division: bool = False


_PLAIN = NumberRules()
_rules: ContextVar[NumberRules] = ContextVar("pcbatch_number_rules", default=_PLAIN)


def rules() -> NumberRules:
    """Return the rules in force."""
    return _rules.get()


def using(new: NumberRules) -> AbstractContextManager[None]:
    """Put rules into force within the context."""
    return setting(_rules, new)


@contextlib.contextmanager
def checking_division() -> Iterator[None]:
    """Let divisions of Python's numbers by zero raise within the context, as in the body of a `try`."""
    with using(replace(rules(), division=True)):
        yield
