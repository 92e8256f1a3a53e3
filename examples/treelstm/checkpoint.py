"""Arrays in a file that is there whole or not at all, and holds no code.

The file is a NumPy archive, read without pickle. It is written beside its place and then renamed, which a file system
does in one step: whoever is killed while writing leaves the checkpoint before.
"""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

VERSION = 1
ABOUT = "about"  # what the arrays belong to, as JSON


class CheckpointError(ValueError):
    """A file that cannot be gone on from."""


def save(path: Path, tree: Any, about: dict[str, Any]) -> None:
    """Write the arrays of a pytree, and what they belong to."""
    arrays = {name: np.asarray(leaf) for name, leaf in _named(tree).items()}
    text = json.dumps({"version": VERSION, **about}, sort_keys=True)
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            np.savez(file, **{ABOUT: np.array(text)}, **arrays)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def load(path: Path, like: Any, about: dict[str, Any]) -> Any:
    """A pytree as `like`, whose arrays may be longer or shorter along the first axis where those of `like` are empty.

    What the file says that it belongs to must be `about`.
    """
    found = _read(path)
    _check_about(path, json.loads(str(found.pop(ABOUT, "null"))), {"version": VERSION, **about})
    wanted = _named(like)
    if found.keys() != wanted.keys():
        raise CheckpointError(f"{path} holds other arrays: {', '.join(sorted(found.keys() ^ wanted.keys()))}")
    for name, leaf in wanted.items():
        _check_array(path, name, found[name], np.asarray(leaf))
    leaves = [jnp.asarray(found[name]) if isinstance(leaf, jax.Array) else found[name] for name, leaf in wanted.items()]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def _named(tree: Any) -> dict[str, Any]:
    """Leaves by their place in the tree."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in leaves}


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return dict(archive)
    except (ValueError, EOFError, zipfile.BadZipFile, AttributeError, TypeError) as broken:
        raise CheckpointError(f"{path} is not a checkpoint: {broken}") from None


def _check_about(path: Path, found: Any, wanted: dict[str, Any]) -> None:
    if not isinstance(found, dict):
        raise CheckpointError(f"{path} is not a checkpoint: it does not say what it belongs to")
    differences = [
        f"{key} is {found.get(key)!r} there and {wanted.get(key)!r} here"
        for key in sorted(found.keys() | wanted.keys())
        if found.get(key) != wanted.get(key)
    ]
    if differences:
        raise CheckpointError(f"{path} belongs to another training: {'; '.join(differences)}")


def _check_array(path: Path, name: str, found: np.ndarray, wanted: np.ndarray) -> None:
    grows = wanted.size == 0 and found.shape[1:] == wanted.shape[1:]
    if found.dtype != wanted.dtype or not (grows or found.shape == wanted.shape):
        there, here = f"{found.dtype}{list(found.shape)}", f"{wanted.dtype}{list(wanted.shape)}"
        raise CheckpointError(f"{path}: {name} is {there} there and {here} here")
