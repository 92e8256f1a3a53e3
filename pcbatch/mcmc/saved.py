"""A run of chains in a file: its state after the warm-up, and the draws so far."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import fields
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
from pcbatch.runs.checkpoint_file import read, reading, write_if_possible
from pcbatch.runs.fingerprint import ADDRESS, add_jaxpr

KIND = "chains"


class Progress(NamedTuple):
    """A run between two calls: what the warm-up has found, with the chains where they are now, and all draws."""

    warm: Warm
    pieces: tuple[Piece, ...]


def fingerprint(target: Target, settings: Settings, start: Any, data: tuple[Any, ...]) -> dict[str, str]:
    """All that draws depend on, by what it is called: hashes of the log density and of what it is given, and options.

    How many draws there are to be is not among it: a run goes on.
    """
    one = np.zeros(target.size, target.dtype)
    closed = jax.make_jaxpr(target.logp_and_grad)(one, *data)
    density = hashlib.sha256(f"{ADDRESS.sub('', str(closed.jaxpr))} {target.structure}".encode())
    add_jaxpr(density, closed)
    parts = {"the log density": density.hexdigest(), "the start": _hash(start), "the data": _hash(data)}
    options = {f"`{field.name}`": repr(getattr(settings, field.name)) for field in fields(settings)}
    return parts | {name: value for name, value in options.items() if name != "`draws`"} | {"jax": jax.__version__}


def _hash(values: Any) -> str:
    digest = hashlib.sha256()
    for array in map(np.asarray, jax.tree.leaves(values)):
        digest.update(f"{array.dtype}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class RunFile:
    """The file of a run, written again when so many seconds have passed; without a path there is none."""

    def __init__(self, path: Path | None, every: float, of: dict[str, str]) -> None:
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


def save(path: Path, of: dict[str, str], progress: Progress) -> None:
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


def load(path: Path, of: dict[str, str]) -> Progress | None:
    """Read a run; None if there is no file.

    Raises:
        StateError: PCB442 if the file is damaged, PCB443 if it is of another run.
    """
    if not path.exists():
        return None
    about, arrays = read(path)
    if about.get("kind") != KIND or about.get("of") != of:
        title = f"{path.name} holds another run, not one of these chains"
        raise StateError(
            Diagnostic("PCB443", title, notes=_differences(about, of), helps=("remove the file, or name another one",))
        )
    with reading(path):
        return _progress(about, arrays)


def _differences(about: Mapping[str, Any], of: Mapping[str, str]) -> tuple[str, ...]:
    """Lines that name the parts of a run that differ between a file and the call."""
    then = about.get("of")
    if about.get("kind") != KIND or not isinstance(then, dict):
        return ("it was written by something else, or by another version of pcbatch",)
    names = [name for name in of if then.get(name) != of[name]] or ["an option"]
    shown = {name for name in names if name.startswith("`") or name == "jax"}
    return tuple(
        f"{name} was {then.get(name)}, and is {of[name]} now" if name in shown else f"{name} is not that of the file"
        for name in names
    )


def _progress(about: Mapping[str, Any], arrays: Mapping[str, Any]) -> Progress:
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
