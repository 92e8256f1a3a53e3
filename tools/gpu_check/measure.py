"""The measurement of cases: compile each in a process of its own, and read what XLA dumps."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.gpu_check import ptxas, thunks
from tools.gpu_check.cases import Case
from tools.gpu_check.launches import Launches, launches

ROOT: Final = Path(__file__).parents[2]
MACHINE: Final = "machine"  # the name of the kernel that holds a whole machine
SECONDS: Final = 600  # for one case


@dataclass(frozen=True, slots=True)
class Measured:
    """A program that was compiled.

    Attributes:
        launches: The counts of its thunks.
        kernels: The kernels that hold machines.
    """

    launches: Launches
    kernels: tuple[ptxas.Kernel, ...]

    def numbers(self) -> Mapping[str, int]:
        """Return what is recorded, by name; of each number less is better."""
        run, trip = self.launches.run, self.launches.trip
        counts = {"waits": run.waits, "launches": run.launches, "kernels": run.kernels, "copies": run.copies}
        if trip is not None:
            counts |= {"waits per trip": trip.waits, "launches per trip": trip.launches}
            counts |= {"kernels per trip": trip.kernels, "copies per trip": trip.copies}
        if self.kernels:
            counts["registers"] = max(kernel.registers for kernel in self.kernels)
            counts["spilled"] = sum(kernel.spilled for kernel in self.kernels)
        return counts


@dataclass(frozen=True, slots=True)
class Refused:
    """A program that does not compile, and the last line of what was said."""

    why: str


def measure(cases: Sequence[Case], jobs: int, keep: Path | None) -> Iterator[tuple[Case, Measured | Refused]]:
    """Compile cases, `jobs` at a time, and give each with its outcome, in order.

    With `keep`, dumps stay in a folder of it for each case.
    """
    with ThreadPoolExecutor(jobs) as pool:
        yield from zip(cases, pool.map(lambda case: _measured(case, keep), cases), strict=True)


def _measured(case: Case, keep: Path | None) -> Measured | Refused:
    if keep is not None:
        folder = keep / str(case).replace(" ", "-")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return _compiled(case, folder)
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as temporary:
        return _compiled(case, Path(temporary))


def _compiled(case: Case, folder: Path) -> Measured | Refused:
    flags = f"--xla_dump_to={folder} --xla_dump_emitter_re=ptx"  # newer releases dump PTX where they are asked to
    env = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-m", "tools.gpu_check.compile_case", str(case)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        return Refused(([line for line in done.stderr.splitlines() if line.strip()] or ["no message"])[-1][:300])
    return read(folder)


def read(folder: Path) -> Measured:
    """Read the dump of one program.

    Raises:
        thunks.DumpError: There is no thunk sequence, or it has another form.
        ValueError: The PTX of a machine's kernel is missing, or ptxas says nothing about it.
    """
    sequence = thunks.parse(_sequence(folder).read_text(encoding="utf-8"))
    machines = {thunk.name for thunk in thunks.walk(sequence) if thunk.name == MACHINE}
    return Measured(launches(sequence), ptxas.assemble(sorted(folder.glob("*.ptx")), machines))


def _sequence(folder: Path) -> Path:
    """Return the dump of the sequence that is executed: XLA writes a second one where its passes changed the first."""
    for pattern in ("*.thunk_sequence_after_thunk_passes.txt", "*.thunk_sequence.txt"):
        files = sorted(folder.glob(pattern))
        if len(files) == 1:
            return files[0]
        if files:
            raise thunks.DumpError(f"{len(files)} programs in {folder}, not one: {', '.join(f.name for f in files)}")
    raise thunks.DumpError(f"no thunk sequence in {folder}: was the program compiled for a GPU?")
