"""What the command lines of the examples have in common."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def at_least(least: int) -> Callable[[str], int]:
    """The type of an option."""

    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least}")
        return value

    number.__name__ = "integer"
    return number


def positive(text: str) -> float:
    """Another one."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def check_outputs(parser: argparse.ArgumentParser, files: dict[str, Path | None], folder: Path | None) -> None:
    """Can these files, by option, be written, and pictures (`--plot`) go into this folder?"""
    for name, path in files.items():
        if path and not path.resolve().parent.is_dir():
            parser.error(f"--{name} {path}: no such directory")
    if folder and folder.exists() and not folder.is_dir():
        parser.error(f"--plot {folder}: not a directory")


def write_json(path: Path, numbers: dict[str, Any]) -> None:
    """Write the numbers to a file."""
    path.write_text(json.dumps(numbers, indent=2, allow_nan=False) + "\n")
