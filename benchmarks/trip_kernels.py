"""Kernels of one trip, counted in the text of a compiled module (`compiled.as_text()`).

XLA:CPU runs each of them as a thunk of its own, at 1 to 2 microseconds: what a small trip costs. A trip is the body of
the outer loop with the most kernels, and of all loops and branches inside it, each counted once, however often it runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "iota", "partition-id"}
CONTROL = {"while", "conditional"}
BITS = {"pred": 8, "s4": 8, "u4": 8, "bf16": 16, "c64": 64, "c128": 128}

COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?[\w.\-]+ = (\(.*?\)|\S+) ([\w\-]+)\((.*)$")
BODY = re.compile(r"\b(?:condition|body|true_computation|false_computation)=%?([\w.\-]+)")
BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
SHAPE = re.compile(r"\b([a-z]+\d*\w*)\[([\d,]*)\]")


class Kernels(NamedTuple):
    """The work of one trip: kernels that it starts (copies among them), inner loops and branches, and bytes written."""

    kernels: int
    copies: int
    loops: int
    bytes: int


class _Instruction(NamedTuple):
    shape: str
    opcode: str
    called: tuple[str, ...]  # the bodies of a loop, of a branch


def per_trip(text: str) -> Kernels:
    """Count the kernels of a trip; a module without a loop has none."""
    modules, entry = _computations(text)
    loops = [_total(modules, loop.called) for loop in _outer_loops(modules, entry)]
    return max(loops, default=Kernels(0, 0, 0, 0))


def _computations(text: str) -> tuple[dict[str, list[_Instruction]], str]:
    """The instructions of each computation by name, and the name of the module's own."""
    found: dict[str, list[_Instruction]] = {}
    name = entry = ""
    for line in text.splitlines():
        if start := COMPUTATION.match(line):
            name = start[1]
            found[name] = []
            entry = name if line.startswith("ENTRY") else entry
        elif name and (instruction := INSTRUCTION.match(re.sub(r"/\*.*?\*/", "", line))):
            shape, opcode, rest = instruction.groups()
            called = tuple(BODY.findall(rest)) if opcode in CONTROL else ()
            branches = BRANCHES.search(rest) if opcode == "conditional" else None
            called += tuple(part.strip(" %") for part in branches[1].split(",")) if branches else ()
            found[name].append(_Instruction(shape, opcode, called))
    return found, entry


def _outer_loops(modules: Mapping[str, list[_Instruction]], name: str) -> Iterator[_Instruction]:
    """Yield the loops of a computation and of its branches that are in no other loop."""
    for instruction in modules.get(name, []):
        if instruction.opcode == "while":
            yield instruction
        elif instruction.opcode == "conditional":
            for called in instruction.called:
                yield from _outer_loops(modules, called)


def _total(modules: Mapping[str, list[_Instruction]], names: tuple[str, ...]) -> Kernels:
    kernels = copies = loops = size = 0
    for instruction in (each for name in names for each in modules[name]):
        if instruction.opcode in CONTROL:
            inner = _total(modules, instruction.called)
            kernels, copies = kernels + inner.kernels, copies + inner.copies
            loops, size = loops + 1 + inner.loops, size + inner.bytes
        elif instruction.opcode not in FREE:
            kernels += 1
            copies += instruction.opcode in ("copy", "copy-start")
            size += _bytes(instruction.shape)
    return Kernels(kernels, copies, loops, size)


def _bytes(shape: str) -> int:
    """The bytes of a result; one that is written in place counts whole."""
    return sum(
        math.prod(int(size) for size in sizes.split(",") if size) * _width(dtype)
        for dtype, sizes in SHAPE.findall(shape)
    )


def _width(dtype: str) -> int:
    digits = re.search(r"\d+", dtype)
    return BITS.get(dtype, int(digits[0]) if digits else 8) // 8
