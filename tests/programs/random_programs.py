"""Random terminating programs: what the language has, as source text that Hypothesis draws and shrinks.

Recursion goes on `fuel`, which every call lowers; loops count down something of their own.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np

import pcbatch
from tests.programs.loops import Lines, indented
from tests.programs.statements import Statements
from tests.programs.tape import GLOBALS, Scope, Signature

PARAMETERS = {"int": ("a", "b"), "float": ("u",), "bool": ("p",), "array": ("v",), "pair": ("t",), "dict": ("d",)}
RESULTS = (
    ("int",), ("int",), ("int",), ("int", "int"), ("bool",), ("bool",), ("float",), ("array",), ("int", "float"),
    ("int", "array"), ("int", "dict"),
)  # fmt: skip
MOST_STATEMENTS = 8  # of the entry, blocks counted as one
TAPE = 600  # bytes; few programs need more
HEADER = "def twice(x):\n    return x * 2\n"


@dataclass(frozen=True, slots=True)
class RandomProgram:
    """Source text whose entry is `f0`, and the kinds of its parameters by name."""

    text: str
    params: tuple[tuple[str, str], ...]
    size: int

    def __repr__(self) -> str:
        return f"program with arrays of {self.size}, parameters {dict(self.params)}:\n{self.text}"

    def arguments(self, seed: int, lanes: int) -> tuple[np.ndarray, ...]:
        """One array per parameter."""
        rng = np.random.default_rng(seed)
        return tuple(_sample(rng, name, kind, lanes, self.size) for name, kind in self.params)


def _sample(rng: np.random.Generator, name: str, kind: str, lanes: int, size: int) -> np.ndarray:
    match kind:
        case "int":
            return rng.integers(0 if name == "fuel" else -3, 4 if name == "fuel" else 30, lanes).astype(np.int32)
        case "float":
            return (rng.integers(-16, 17, lanes) / 4).astype(np.float32)
        case "bool":
            return rng.integers(0, 2, lanes).astype(bool)
        case "array":
            return rng.integers(-9, 30, (lanes, size)).astype(np.int32)
    raise AssertionError(kind)


def program_of(tape: bytes) -> RandomProgram:
    """The program that some random bytes stand for: up to three functions."""
    writer = Statements(tape)
    writer.functions = [_signature(writer, k) for k in range(1 + writer.below(3))]
    parts = []
    for k, signature in enumerate(writer.functions):
        budget = 1 + writer.below(MOST_STATEMENTS if k == 0 else MOST_STATEMENTS // 2)
        parts.append("\n".join(_function(writer, signature, budget)) + "\n")
    entry = writer.functions[0]
    text = "\n".join([HEADER, *_needed(parts)])
    return RandomProgram(text, tuple((name, kind) for name, kind, _ in entry.params), writer.size)


def _needed(functions: list[str]) -> list[str]:
    """The first function and those that it reaches."""
    found, pending = {0}, [0]
    for k in pending:
        for called in range(len(functions)):
            if called not in found and f"f{called}(" in functions[k].split(":", 1)[1]:
                found.add(called)
                pending.append(called)
    return [text for k, text in enumerate(functions) if k in found]


def programs() -> st.SearchStrategy[RandomProgram]:
    """A strategy for programs. One draw each: were every choice a draw of its own, Hypothesis would spend most of
    its time on programs that are nearly, or quite, those that it had before."""
    return st.binary(min_size=TAPE, max_size=TAPE).map(program_of)


def _signature(w: Statements, k: int) -> Signature:
    style = w.pick(("leaf", "base", "base", "base", "base", "guard", "guard", *(["inline"] * 2 if k else [])))
    kinds = ["int", *(kind for kind in ("int", "float", "bool", "array") if w.below(2))]
    kinds += [kind for kind in ("pair", "dict") if k and w.chance(4)]
    seen: dict[str, int] = {}
    names = []
    for kind in kinds:
        names.append((PARAMETERS[kind][seen.setdefault(kind, 0)], kind))
        seen[kind] += 1
    names.insert(w.below(len(names) + 1), ("fuel", "int"))
    # Defaults stand at the end; fuel and arrays, and what comes before them, always get an argument.
    free = max(i for i, (name, kind) in enumerate(names) if name == "fuel" or kind == "array")
    defaults = w.below(len(names) - free)
    params = [
        (name, kind, _default(kind) if i >= len(names) - defaults else None) for i, (name, kind) in enumerate(names)
    ]
    keyword_only = w.below(len(names)) if k and w.chance(3) else 0
    return Signature(f"f{k}", tuple(params), keyword_only, w.pick(RESULTS), style)


def _default(kind: str) -> str:
    return {"int": "4", "float": "0.5", "bool": "True", "pair": "(2, 3)", "dict": "{'s': 2, 'n': 3}"}[kind]


def _function(w: Statements, f: Signature, budget: int) -> Lines:
    w.start(f, budget)
    names: dict[str, list[str]] = {kind: [] for kind in PARAMETERS}
    for name, kind, _ in f.params:
        names[kind].append(name)
    assignable = {kind: [name for name in found if name != "fuel"] for kind, found in names.items()}
    w.scope = Scope(names, assignable)
    left, w.calls = w.calls, 0  # no calls before the fuel is tested
    lines = _first_lines(w)
    if f.style == "base":
        lines += ["if fuel <= 0:", f"    return {w.result(1)}"]
    w.calls = left
    lines += w.some_statements()
    while w.budget > 0 and w.below(4):
        lines += w.statement()
    return [f.decorator, f"def {f.name}({_parameters(f)}):", *indented(lines), f"    return {w.result()}"]


def _first_lines(w: Statements) -> Lines:
    """Locals of every kind, some of them with the names of globals."""
    lines: Lines = []
    if w.below(2):
        hidden = w.pick([*GLOBALS, "twice"])
        lines.append(f"{hidden} = {w.below(9)}")
        w.scope.names["int"].append(hidden)
        w.scope.assignable["int"].append(hidden)
    lines.append(f"x, y = {w.below(3)}, {w.int_atom().text}")
    new = {"int": ["x", "y"]}
    for kind, name in (("float", "s"), ("bool", "q"), ("array", "m"), ("pair", "c"), ("dict", "e")):
        if w.below(2):
            lines.append(f"{name} = {w.of_kind(kind, 1)}")
            new[kind] = [name]
    for kind, found in new.items():
        w.scope.names[kind] += found
        w.scope.assignable[kind] += found
    return lines


def _parameters(f: Signature) -> str:
    shown = [name if default is None else f"{name}={default}" for name, _, default in f.params]
    if f.keyword_only:
        shown.insert(len(shown) - f.keyword_only, "*")
    return ", ".join(shown)


def load(text: str, name: str) -> Callable[..., Any]:
    """Execute the text so that its source can be found; gives the batched `f0`."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    return _execute(text, name, {"pcbatch": pcbatch, "jnp": jnp})


def load_plain(text: str, name: str) -> Callable[..., Any]:
    """The same program with nothing of pcbatch or JAX in it; gives the plain `f0`."""
    return _execute(text, name, {"pcbatch": _Undecorated, "jnp": PlainNumpy})


def _execute(text: str, name: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    namespace |= GLOBALS
    exec(compile(text, name, "exec"), namespace)
    return namespace["f0"]


class _Undecorated:
    """Stands for the package where programs run in plain Python."""

    @staticmethod
    def batch(fn: Callable[..., Any]) -> Callable[..., Any]:
        return fn

    inline = unroll = batch


class PlainArray(np.ndarray):
    """A NumPy array with the out-of-place updates that JAX has."""

    @property
    def at(self) -> _At:
        return _At(self)


@dataclass(frozen=True, slots=True)
class _At:
    array: PlainArray
    index: Any = None

    def __getitem__(self, index: Any) -> _At:
        return _At(self.array, index)

    def set(self, value: Any) -> PlainArray:
        new = self.array.copy()
        new[self.index] = value
        return new

    def add(self, value: Any) -> PlainArray:
        return self.set(self.array[self.index] + value)

    def max(self, value: Any) -> PlainArray:
        return self.set(max(self.array[self.index], value))

    def min(self, value: Any) -> PlainArray:
        return self.set(min(self.array[self.index], value))


class PlainNumpy:
    """The few functions of `jax.numpy` that programs use, in NumPy."""

    floor = staticmethod(np.floor)
    maximum = staticmethod(np.maximum)
    minimum = staticmethod(np.minimum)

    @staticmethod
    def sum(array: PlainArray) -> int:
        return int(np.sum(array))

    @staticmethod
    def any(array: PlainArray) -> bool:
        return bool(np.any(array))

    @staticmethod
    def arange(size: int) -> PlainArray:
        return np.arange(size, dtype=np.int32).view(PlainArray)

    @staticmethod
    def stack(arrays: Any) -> PlainArray:
        return np.stack(arrays).view(PlainArray)

    @staticmethod
    def where(condition: Any, a: Any, b: Any) -> Any:
        chosen = np.where(condition, a, b)
        return chosen.view(PlainArray) if chosen.ndim else chosen.item()
