"""Checkpoint files: a header in JSON and arrays, in an archive that `numpy.load` opens.

Nothing in it is code, and nothing is unpickled. It is written beside its place and moved there when all of it is on the
disk: a process that dies on the way leaves the file that was there before. Every member has a checksum, which
reading checks.
"""

from __future__ import annotations

import importlib
import json
import os
import secrets
import struct
import time
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.compiler.growth import limit_of
from pcbatch.compiler.program import Program
from pcbatch.data.capacity import Room
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import PcbatchError, StateError
from pcbatch.jax_settings import SETTINGS, settings
from pcbatch.runs import fingerprint

FORMAT = 2
HEADER = "pcbatch"  # the member that describes the others
FORSAKEN = 3600.0  # seconds without a write after which a file that was begun is taken for one of a killed process

GIVE = 'give the path of a file in a folder that exists, such as "run.npz"'


def write(path: Path, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a checkpoint: all of it, or nothing.

    Args:
        path: the file.
        about: the header, ready for JSON.
        arrays: by name.

    Raises:
        OSError: it cannot be written.
    """
    held = {name: np.asarray(x) for name, x in arrays.items()}
    dtypes = {name: [str(x.dtype), list(x.shape)] for name, x in held.items()}
    header = json.dumps({"format": FORMAT, **about, "arrays": dtypes}).encode()
    with _beside(path) as partial:
        with partial.open("xb") as file:
            members = {name: _plain(x) for name, x in held.items()}
            np.savez(file, allow_pickle=False, **{HEADER: np.frombuffer(header, np.uint8)}, **members)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    _settle(path.parent)
    _sweep(path)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file in the same folder. Each writer has one of its own: two that write to one path
    do not meet in the middle of a file."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        yield partial
    except BaseException:
        with suppress(OSError):
            partial.unlink()  # half a state would keep a full disk full
        raise


def _sweep(path: Path) -> None:
    """Remove temporary files that killed processes have left."""
    with suppress(OSError):
        for partial in path.parent.iterdir():
            ours = partial.name.startswith(f".{path.name}.") and partial.suffix == ".partial"
            if ours and time.time() - partial.stat().st_mtime > FORSAKEN:
                partial.unlink()


def write_if_possible(path: Path, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a checkpoint, or warn: a run had better continue without one than end for a disk that is full."""
    try:
        write(path, about, arrays)
    except OSError as error:
        warnings.warn(f"no checkpoint could be written to {path}: {error}", RuntimeWarning, stacklevel=2)


def _settle(folder: Path) -> None:
    """Sync the folder, so that the new name is on the disk too, where the system can do that."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _plain(array: np.ndarray) -> np.ndarray:
    """Return an array of a dtype that NumPy itself has: bfloat16 and its like as raw bytes."""
    if array.dtype.isbuiltin == 1:
        return array
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


FAULTS: tuple[type[Exception], ...] = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, LookupError, ValueError, TypeError, AttributeError),
    *(OSError, RuntimeError, ArithmeticError, AssertionError, MemoryError),
)
"""Errors of files that are damaged, encrypted, nested too deep or not ours."""


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read a checkpoint that `write` has written.

    Returns:
        The header, and the arrays by name.

    Raises:
        StateError: there is no such file, or not all of it.
    """
    with reading(path):
        if path.is_dir():
            raise unreadable(path, "it is a folder")
        if path.exists() and not (path.is_file() and zipfile.is_zipfile(path)):
            raise unreadable(path, "it was cut off, or it is no archive of arrays")
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            header = json.loads(archive[HEADER].tobytes())
            if header["format"] != FORMAT:
                raise _other_format(path, header["format"])
            arrays = {name: _shaped(archive[name], *kind) for name, kind in header["arrays"].items()}
    return header, arrays


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise StateError where what a file holds is not what `write` writes: whoever reads the header may find so."""
    try:
        yield
    except PcbatchError:
        raise
    except FileNotFoundError:
        raise unreadable(path, "there is no such file") from None
    except FAULTS as error:
        raise unreadable(path, _reason(error)) from None


def _shaped(plain: np.ndarray, dtype: str, shape: list[int]) -> np.ndarray:
    wanted = jnp.dtype(dtype)
    array = plain if wanted.isbuiltin == 1 else plain.view(wanted).reshape(shape)
    if array.dtype != wanted or list(array.shape) != shape:
        raise ValueError("an array is not what the header says")
    return array


def _reason(error: Exception) -> str:
    said = str(error).splitlines()[0].rstrip(".") if str(error) else ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def unreadable(path: Path, reason: str) -> StateError:
    """The error about a file that holds no checkpoint."""
    title = f"`{path.name}` holds no run that can be read"
    help = "give the path that `m.save(path)` or `save_to=` was given; the file that an interrupted write leaves "
    help += "behind has another name, and is not needed"
    return StateError(Diagnostic("PCB442", title, notes=(reason,), helps=(help,)))


def _other_format(path: Path, found: object) -> StateError:
    title = f"`{path.name}` was written in format {found}, and this pcbatch reads format {FORMAT}"
    help = "go on with the version of pcbatch that wrote it, or start again"
    return StateError(Diagnostic("PCB442", title, helps=(help,)))


def path_of(path: Any) -> Path:
    """Return the path of the file itself, behind all links."""
    try:
        return Path(os.fsdecode(os.fspath(path))).expanduser().resolve()
    except TypeError:
        raise no_path(short(path), "a path is a string or a `pathlib.Path`") from None
    except (ValueError, OSError, RuntimeError) as error:  # a zero byte, links in a circle, the home of nobody
        raise no_path(short(path), _reason(error)) from None


def checked_path(path: Any) -> Path:
    """Return the path of a file that can be written, so that no run takes hours to learn that it cannot."""
    file = path_of(path)
    try:
        if file.is_dir():
            raise unwritable(str(file), "it is a folder")
        if not file.parent.is_dir():
            raise unwritable(str(file), f"there is no folder {file.parent}")
        if os.path.lexists(file) and not file.is_file():
            raise unwritable(str(file), "it is a device, a pipe or a link to itself, and would become a file")
        with _beside(file) as partial:
            partial.open("xb").close()
            partial.unlink()
    except OSError as error:
        raise unwritable(str(file), _reason(error)) from None
    return file


def unwritable(path: str, reason: str) -> StateError:
    """The error about a path where no checkpoint can be written."""
    return StateError(Diagnostic("PCB442", f"no run can be kept at {path}", notes=(reason,), helps=(GIVE,)))


def no_path(given: str, reason: str) -> StateError:
    """The error about a value that is no path."""
    return StateError(Diagnostic("PCB442", f"{given} is no path of a file", notes=(reason,), helps=(GIVE,)))


# Headers of checkpoints: what identifies a run, and the check that a program may continue it.

ROOM = ("capacity", "characters", "records", "inner", "inner_characters", "entries", "inner_entries")  # keys
ROWS = "rows"  # the key of the rooms of classes
WHAT = {"run": "`f.run(...)` or `f.start(...)`", "map": "`f.map(...)` over chunks"}


def header(compiled: Program, kind: str) -> dict[str, Any]:
    """Return the part of a header that all kinds of runs have.

    Args:
        compiled: the program.
        kind: "run" or "map", a key of `WHAT`.
    """
    room = {**dict(zip(ROOM, compiled.room.parts, strict=True)), ROWS: dict(compiled.room.rows)}
    return {
        "kind": kind,
        "pcbatch": _version(),
        "jax": jax.__version__,
        "program": fingerprint.of_compiled(compiled),
        "settings": [str(value) for value in settings()],
        **(room if compiled.may_be_full else {}),
        **({"alone": True} if compiled.is_alone_by_choice else {}),
    }


def as_saved(compiled: Program, found: Mapping[str, Any]) -> Program:
    """Return the program that goes on with the run in a checkpoint with this header: its containers have as much room,
    and its lanes run together if they did."""
    if compiled.is_alone_by_choice and not found.get("alone"):
        compiled = compiled.recompile.together()
    # Parts that older files have not: dicts in containers had the room of lists there.
    old = {**dict.fromkeys(ROOM[3:], 0), ROOM[-1]: found.get("inner", 0)} if ROOM[0] in found else {}
    parts = ({**old, **found}.get(key, part) for key, part in zip(ROOM, compiled.room.parts, strict=True))
    rows = found.get(ROWS, () if old else compiled.room.rows)
    room = Room(*parts, rows=tuple(sorted(dict(rows).items())))
    known = all(isinstance(n, int) and 0 <= n <= limit_of(compiled.options) for n in room.sizes) and room.elements > 0
    return compiled.recompile.with_room(room) if compiled.may_be_full and known and room != compiled.room else compiled


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
