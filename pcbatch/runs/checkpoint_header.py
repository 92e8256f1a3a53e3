"""Headers of checkpoints: what identifies a run, and the check that a program may continue it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

from pcbatch.compiler.growth import limit_of
from pcbatch.compiler.program import Program
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import StateError
from pcbatch.lowering.typing.jax_types import SETTINGS, settings
from pcbatch.runs import fingerprint
from pcbatch.runs.checkpoint_file import reading

WHAT = {"run": "`f.run(...)` or `f.start(...)`", "map": "`f.map(...)` over chunks"}


def header(compiled: Program, kind: str) -> dict[str, Any]:
    """Return the part of a header that all kinds of runs have.

    Args:
        compiled: the program.
        kind: "run" or "map", a key of `WHAT`.
    """
    return {
        "kind": kind,
        "pcbatch": _version(),
        "jax": jax.__version__,
        "program": fingerprint.of_compiled(compiled),
        "settings": [str(value) for value in settings()],
        **({"capacity": compiled.capacity} if compiled.may_be_full else {}),
    }


def with_saved_capacity(compiled: Program, found: Mapping[str, Any]) -> Program:
    """Return the program whose containers have as much room as those of the run in a checkpoint with this header."""
    capacity = found.get("capacity", compiled.capacity)
    known = compiled.may_be_full and isinstance(capacity, int) and 0 < capacity <= limit_of(compiled.options)
    return compiled.recompile.with_capacity(capacity) if known and capacity != compiled.capacity else compiled


def _version() -> str:
    return str(importlib.import_module("pcbatch").__version__)


def check(path: Path, found: Mapping[str, Any], compiled: Program, kind: str, **wanted: tuple[Any, str]) -> None:
    """Refuse a checkpoint that this call may not continue.

    Args:
        path: the file, for messages.
        found: its header.
        compiled: the program of the call.
        kind: "run" or "map".
        **wanted: by key of the header, the value that this call has, and what to call it in messages.

    Raises:
        StateError: it is of another program, version or setting, or one of the values differs.
    """
    check_kind(path, found, kind)
    with reading(path):
        of_program, of_values = found["program"], {key: found[key] for key in wanted}
    if of_program != fingerprint.of_compiled(compiled):
        note = "its blocks, their primitives, the constants in them, the types of the arguments, or the options "
        note += "`unroll`, `max_steps` and `stats`, are not the same"
        if found.get("jax") != jax.__version__:
            note += f"; jax {found.get('jax')} wrote it, and this is jax {jax.__version__}"
        raise refused(path, "was written by another program", note)
    for key, (value, what) in wanted.items():
        if of_values[key] != value:
            raise refused(path, f"was written for other {what}", _differ(what, of_values[key], value))


def check_kind(path: Path, found: Mapping[str, Any], kind: str) -> None:
    """Refuse a checkpoint of another kind of run, another version of pcbatch, or other settings of JAX."""
    if found.get("pcbatch") != _version():
        raise refused(path, f"was written by pcbatch {found.get('pcbatch')}", f"this is pcbatch {_version()}")
    with reading(path):
        of_kind, then_set = WHAT[found["kind"]], list(zip(SETTINGS, found["settings"], strict=True))
    if of_kind != WHAT[kind]:
        raise refused(path, f"was written by {of_kind}", f"it is read as one of {WHAT[kind]}")
    for (name, then), now in zip(then_set, map(str, settings()), strict=True):
        if then != now:
            help = f"set it as it was, `jax.config.update({name!r}, {_literal(then)})`, before anything is computed"
            raise refused(path, f"was written under another setting of JAX, `{name}`", f"{then} then, {now} now", help)


def _literal(text: str) -> str:
    return text if text in ("True", "False", "None") else repr(text)


def _differ(what: str, then: object, now: object) -> str:
    if then is None:
        return f"the file does not tell the {what}: they were gone when it was written"
    if isinstance(then, str) and len(then) == 64:  # a digest says nothing to a reader
        return f"the {what} of this call are not those that the run began with"
    return f"{then} then, {now} now"


def refused(path: Path, what: str, note: str, help: str = "") -> StateError:
    """The error about a checkpoint that may not be continued here."""
    title = f"the run in `{path.name}` {what}"
    usual = "start again: give another path, or remove the file; or go on with what wrote it"
    return StateError(Diagnostic("PCB443", title, notes=(note,), helps=(help or usual,)))
