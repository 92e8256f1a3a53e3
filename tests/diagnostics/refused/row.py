"""A refused program, the help that a reader follows, and the program that the reader writes then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.diagnostics.following import Module, lanes_of, load

HEAD = "import math\nimport jax\nimport jax.numpy as jnp\nimport numpy as np\nimport pcbatch\n"


@dataclass(frozen=True, slots=True)
class Row:
    """One refusal.

    Attributes:
        name: of the row.
        code: of the error.
        help: a part of the help that is followed.
        text: the program, in which the batched function is `f`.
        examples: the arguments of each lane, as an expression.
        edits: what the reader replaces in the program, and by what.
        args: the arguments of the refused call, as an expression that may read `examples`; by default as `arguments`
            makes them.
        to: those of the changed program; by default the same.
        outside: what the reader makes of the result `r` of a lane, as an expression.
        own: the meaning is that of the changed program in plain Python: what is drawn or counted has no other.
    """

    name: str
    code: str
    help: str
    text: str
    examples: str
    edits: tuple[tuple[str, str], ...]
    args: str = ""
    to: str = ""
    outside: str = "r"
    own: bool = False

    @property
    def changed(self) -> str:
        """The program that the reader writes."""
        text = self.text
        for old, new in self.edits:
            assert old in text, (self.name, old)
            text = text.replace(old, new)
        return text

    def refusal(self) -> tuple[list[str], list[str]]:
        """The codes and the helps of the refused program."""
        before, examples = self.loaded(self.text)
        with pytest.raises(pcbatch.PcbatchError) as info:
            before.f.lower(*self.arguments(before, examples, self.args))
        found = info.value.diagnostics  # type: ignore[attr-defined]
        return [each.code for each in found], [help for each in found for help in each.helps]

    def loaded(self, text: str) -> tuple[Module, list[Any]]:
        """A program of this row, and its examples."""
        module = load(HEAD + text)
        return module, eval(self.examples, module.names)

    def arguments(self, module: Module, examples: list[Any], written: str) -> tuple[Any, ...]:
        """The arguments of a call for all lanes."""
        if written:
            return tuple(eval(f"({written},)", module.names | {"examples": examples}))
        return tuple(column(list(values)) for values in zip(*examples, strict=True))

    def differences(self) -> list[tuple[Any, Any]]:
        """What the changed program gives and plain Python gives, where they differ."""
        before, examples = self.loaded(self.text)
        after, own = self.loaded(self.changed)
        args = self.arguments(after, own, self.to or self.args)
        result = after.f(*args)
        found = []
        for lane, example in enumerate(examples):
            got = eval(self.outside, after.names, {"r": value_of(result, lane)})
            want = after.f.plain(*(arg[lane] for arg in args)) if self.own else before.f.plain(*example)
            if not alike(got, want):
                found.append((got, want))
        return found


def column(values: list[Any]) -> Any:
    """An argument of the values of all lanes."""
    if isinstance(values[0], str):
        return pcbatch.ragged(values)
    if isinstance(values[0], list):
        return pcbatch.ragged(values)
    return np.array(values, np.float32 if isinstance(values[0], float) else np.int32)


def value_of(result: Any, lane: int) -> Any:
    """The value of a lane as Python's own."""
    if isinstance(result, tuple):
        return tuple(value_of(part, lane) for part in result)
    return result.tolist()[lane] if hasattr(result, "tolist") else lanes_of(result, lane)


def alike(got: Any, want: Any) -> bool:
    """Is this the value of plain Python, but for rounding?"""
    if isinstance(want, tuple | list):
        return len(got) == len(want) and all(map(alike, got, want))
    if isinstance(want, str | bool) or want is None:
        return bool(got == want)
    return bool(np.allclose(np.asarray(got), np.asarray(want), rtol=2e-6, atol=1e-6))
