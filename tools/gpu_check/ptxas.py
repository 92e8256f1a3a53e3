"""Registers and spills of kernels, from ptxas: the assembler of NVIDIA, which needs no GPU."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ARCHITECTURE: Final = "sm_90a"
ENTRY: Final = re.compile(r"Compiling entry function '(?P<name>[^']+)'")
SPILLS: Final = re.compile(r"(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads")
USED: Final = re.compile(r"Used (?P<registers>\d+) registers")


@dataclass(frozen=True, slots=True)
class Kernel:
    """The machine code of a kernel.

    Attributes:
        name: Its entry in the PTX.
        registers: Registers of a thread, of at most 255.
        spilled: Bytes that a thread stores to memory for want of registers, over the text of the kernel.
    """

    name: str
    registers: int
    spilled: int


def parse(text: str) -> tuple[Kernel, ...]:
    """Read what `ptxas -v` prints.

    Returns:
        The kernels, in order.

    Raises:
        ValueError: The numbers of a kernel are missing.

    Example:
        >>> parse('''ptxas info    : Compiling entry function 'machine' for 'sm_90a'
        ... ptxas info    : Function properties for machine
        ...     0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
        ... ptxas info    : Used 40 registers, used 1 barriers''')
        (Kernel(name='machine', registers=40, spilled=8),)
    """
    entries = list(ENTRY.finditer(text))
    ends = [*(entry.start() for entry in entries[1:]), len(text)]
    return tuple(_kernel(entry["name"], text[entry.end() : end]) for entry, end in zip(entries, ends, strict=True))


def _kernel(name: str, text: str) -> Kernel:
    spills, used = SPILLS.search(text), USED.search(text)
    if spills is None or used is None:
        raise ValueError(f"ptxas says nothing about the registers of `{name}`: {text.strip()!r}")
    return Kernel(name, int(used["registers"]), int(spills["stores"]))


def assemble(files: Iterable[Path], names: Iterable[str]) -> tuple[Kernel, ...]:
    """Assemble the PTX files that hold one of these entries; return the kernels, sorted by name.

    Raises:
        ValueError: No file holds one of the entries.
    """
    wanted = set(names)
    found: list[Kernel] = []
    for file in files:
        if any(f".entry {name}(" in file.read_text(encoding="utf-8") for name in wanted):
            found += [kernel for kernel in parse(_ptxas(file)) if kernel.name in wanted]
    if missing := wanted - {kernel.name for kernel in found}:
        raise ValueError(f"no PTX of {', '.join(sorted(missing))} was dumped")
    return tuple(sorted(found, key=lambda kernel: kernel.name))


def _ptxas(file: Path) -> str:
    command = [_program(), f"-arch={ARCHITECTURE}", "-v", str(file), "-o", "/dev/null"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stderr


def _program() -> str:
    """Return the path of ptxas in the wheel of Triton."""
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("ptxas is in the wheel `triton`, which is not installed: run `make gpu-check`")
    return str(Path(spec.origin).parent / "backends" / "nvidia" / "bin" / "ptxas")
