"""Follow the helps of a refused program to the letter: the spans are replaced by what the helps tell to write."""

from __future__ import annotations

import itertools
import linecache
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pcbatch
from pcbatch.diagnostics.diagnostic import Diagnostic

CODE = re.compile(r"`([^`]+)`")
IMPORT = re.compile(r"`((?:import|from) [^`]+)`")
ABOVE = ", and put above the batched function:\n"
_serial = itertools.count()


@dataclass(frozen=True, slots=True)
class Module:
    """The text of a program, and what it defines; `f` is the batched function."""

    text: str
    names: dict[str, Any]

    @property
    def f(self) -> Any:
        """The batched function."""
        return self.names["f"]


def load(text: str) -> Module:
    """Run the text of a program, whose source can be found as that of a file."""
    file = f"<followed {next(_serial)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": __name__}  # a module that exists, for `dataclass`
    exec(compile(text, file, "exec"), names)
    return Module(text, names)


def program(head: str, parameters: str, expressions: Sequence[str]) -> str:
    """A batched function that returns the values of these expressions, each on a line of its own."""
    lines = [f"    r{k} = {text}" for k, text in enumerate(expressions)]
    results = ", ".join(f"r{k}" for k in range(len(expressions)))
    return "\n".join([head, "@pcbatch.batch", f"def f({parameters}):", *lines, f"    return ({results},)", ""])


def refused(module: Module, args: Sequence[Any]) -> tuple[Diagnostic, ...]:
    """What is wrong with a program."""
    with pytest.raises(pcbatch.CompileError) as info:
        module.f.lower(*args)
    return tuple(info.value.diagnostics)


def followed(text: str, found: Sequence[Diagnostic], choice: int = 0) -> str:
    """A program in which every span says what its help tells to write."""
    lines = text.splitlines()
    above: list[str] = []
    for fault in sorted(found, key=lambda d: d.primary.loc if d.primary else None, reverse=True):
        assert fault.primary is not None
        help, loc = fault.helps[choice], fault.primary.loc
        help, _, definition = help.partition(ABOVE)
        definition, _, late = definition.partition(", with `import")
        help += f", with `import{late}" if late else ""
        above += [definition] if definition and definition not in above else []
        above[:0] = [line for line in IMPORT.findall(help) if line not in above]
        line, end = lines[loc.line - 1], lines[loc.end_line - 1]
        new = line[: loc.col] + replacement(help) + end[loc.end_col :]
        lines[loc.line - 1 : loc.end_line] = [new]
    place = lines.index("@pcbatch.batch")
    return "\n".join([*lines[:place], *above, *lines[place:], ""])


def replacement(help: str) -> str:
    """The code that stands in place of the span."""
    found = CODE.search(help)
    assert found is not None, help
    return found[1]


def same(got: Any, want: Any, rtol: float = 2e-6) -> bool:
    """Is the value of a lane what Python gives, an int as an int?"""
    if isinstance(want, tuple | list):
        return len(got) == len(want) and all(same(a, b, rtol) for a, b in zip(got, want, strict=True))
    got, want = np.asarray(got), np.asarray(want)
    if (got.dtype.kind in "iub") != (want.dtype.kind in "iub") or got.shape != want.shape:
        return False
    if want.dtype.kind in "iub":
        return bool(np.array_equal(got, want))
    return bool(np.allclose(got, want, rtol=rtol, atol=1e-6, equal_nan=True))


def lanes_of(result: Any, lane: int) -> Any:
    """The values of one lane."""
    if isinstance(result, tuple | list):
        return type(result)([lanes_of(part, lane) for part in result])
    return np.asarray(result)[lane]
