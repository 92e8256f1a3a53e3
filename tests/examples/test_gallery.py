"""Every program of the gallery checks all its lanes itself; here they run on few."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest

import examples.gallery as gallery

pytestmark = pytest.mark.long

NEEDS = {"forest": "sklearn"}


@pytest.mark.share(8)
@pytest.mark.promotion("standard")
@pytest.mark.parametrize("name", gallery.NAMES)
def test_program(name, capsys):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    importlib.import_module(f"examples.gallery.{name}").main(lanes=7)
    printed = capsys.readouterr().out
    assert printed.startswith(f"{name}: ") and printed.count("\n") == 1


def test_names_are_all_programs():
    found = {module.name for module in pkgutil.iter_modules(gallery.__path__)} - {"__main__"}
    assert set(gallery.NAMES) == found


def test_table_of_the_programs():
    folder = Path(gallery.__file__).parent
    table = (folder / "README.md").read_text("utf-8")
    for name in gallery.NAMES:
        lines = len((folder / f"{name}.py").read_text("utf-8").splitlines())
        row = next(row for row in table.splitlines() if row.startswith(f"| [{name}]({name}.py) |"))
        assert f"| {lines} |" in row
