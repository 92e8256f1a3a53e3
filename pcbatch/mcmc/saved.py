"""A run of chains in a file: its state after the warm-up, and the draws so far."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import StateError
from pcbatch.mcmc.adaptation import Warm
from pcbatch.mcmc.hamiltonian import Mass, Sample
from pcbatch.mcmc.machine import Chains, Piece
from pcbatch.mcmc.settings import Settings
from pcbatch.mcmc.step_size import Stepper
from pcbatch.mcmc.target import Target
from pcbatch.runs.checkpoint_file import read, write_if_possible

KIND = "chains"


class Progress(NamedTuple):
    """A run between two calls: what the warm-up has found, with the chains where they are now, and all draws."""

    warm: Warm
    pieces: tuple[Piece, ...]


def fingerprint(target: Target, settings: Settings, start: Any, data: tuple[Any, ...]) -> str:
    """A hash of all that draws depend on: the operations of the log density, its constants, and what it is given."""
    one = np.zeros(target.size, target.dtype)
    closed = jax.make_jaxpr(target.logp_and_grad)(one, *data)
    parts = [str(closed.jaxpr), str(target.structure), repr(settings), jax.__version__]
    arrays = [np.asarray(x) for x in (*closed.consts, *jax.tree.leaves((start, data)))]
    digest = hashlib.sha256()
    for part in [*parts, *(f"{x.dtype}{x.shape}" for x in arrays)]:
        digest.update(part.encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class RunFile:
    """The file of a run, written again when so many seconds have passed; without a path there is none."""

    def __init__(self, path: Path | None, every: float, of: str) -> None:
        self.path, self.every, self.of = path, every, of
        self.kept = time.monotonic()

    def load(self) -> Progress | None:
        """Read the run; None if there is no file."""
        return None if self.path is None else load(self.path, self.of)

    def keep(self, state: Progress, *, force: bool = False) -> None:
        """Write the run if it is time, or in any case."""
        if self.path is not None and (force or time.monotonic() - self.kept > self.every):
            save(self.path, self.of, state)
            self.kept = time.monotonic()


def save(path: Path, of: str, progress: Progress) -> None:
    """Write a run, or warn if that is not possible."""
    chains, mass = progress.warm.chains, progress.warm.mass
    arrays: dict[str, Any] = {"sample.rows": chains.sample.rows, "sample.logp": chains.sample.logp}
    arrays |= {"stepper.numbers": chains.stepper.numbers, "mass.inverse": mass.inverse, "mass.root": mass.root}
    arrays["warmup.numbers"] = np.concatenate([piece.numbers for piece in progress.warm.pieces], axis=1)
    if progress.pieces:
        arrays["draws.q"] = np.concatenate([piece.q for piece in progress.pieces], axis=1)
        arrays["draws.numbers"] = np.concatenate([piece.numbers for piece in progress.pieces], axis=1)
    computed = sum(piece.computed for piece in progress.pieces)
    write_if_possible(path, {"kind": KIND, "of": of, "drawn": chains.drawn, "computed": computed}, arrays)


def load(path: Path, of: str) -> Progress | None:
    """Read a run; None if there is no file.

    Raises:
        StateError: PCB442 if the file is damaged, PCB443 if it is of another run.
    """
    if not path.exists():
        return None
    about, arrays = read(path)
    if about.get("kind") != KIND or about.get("of") != of:
        title = f"{path.name} holds another run, not one of these chains"
        notes = ("the log density, its data, the start, or an option is another",)
        raise StateError(Diagnostic("PCB443", title, notes=notes, helps=("remove the file, or name another one",)))
    sample = Sample(arrays["sample.rows"], arrays["sample.logp"])
    chains = Chains(sample, Stepper(arrays["stepper.numbers"]), int(about["drawn"]))
    numbers = arrays["warmup.numbers"]
    warmup = Piece(np.empty((*numbers.shape[:2], 0)), numbers, 0)  # its positions are needed no more
    mass = Mass(jnp.asarray(arrays["mass.inverse"]), jnp.asarray(arrays["mass.root"]))
    warm = Warm(chains, mass, (warmup,))
    pieces: tuple[Piece, ...] = ()
    if "draws.q" in arrays:
        pieces = (Piece(arrays["draws.q"], arrays["draws.numbers"], int(about["computed"])),)
    return Progress(warm, pieces)
