"""An object that is taken out of a container is the one in the container: what changes it there is seen."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import pcbatch

MODULE = """\
class Slot:
    def __init__(self, n):
        self.stock = n

    def sell(self):
        self.stock -= 10


def f(c):
{made}
    x = {taken}
    x.{change}
    return {stocks}
"""
MADE = {
    "list": ("    d = [Slot(2), Slot(3), Slot(1)]", "d", "c", "012"),
    "tuple": ("    d = (Slot(2), Slot(3), Slot(1))", "d", "c", "012"),
    "dict of texts": (
        "    d = {'a': Slot(2), 'b': Slot(3), 'c': Slot(1)}",
        "d.values()",
        "'abc'[c]",
        ("'a'", "'b'", "'c'"),
    ),
    "dict of numbers": ("    d = {0: Slot(2), 1: Slot(3), 2: Slot(1)}", "d.values()", "c", "012"),
    "list that grows": ("    d = []\n    for k in range(3):\n        d.append(Slot((2, 3, 1)[k]))", "d", "c", "012"),
    "dict that grows": (
        "    d = {}\n    for k in range(3):\n        d[k] = Slot((2, 3, 1)[k])",
        "d.values()",
        "c",
        "012",
    ),
}
TAKEN = [
    "d[KEY]",
    "d[KEY] if c > 0 else d[KEY]",
    "list(ALL)[c]",
    "tuple(ALL)[c]",
    "list(ALL)[c:][0]",
    "list(reversed(list(ALL)))[c]",
    "[s for s in ALL if s.stock != c][0]",
    "next(s for s in ALL if s.stock != c)",
    "list(filter(lambda s: s.stock > c, ALL))[0]",
    "list(zip(ALL, range(3)))[c][0]",
    "[(s.stock * (1 - c), k, s) for k, s in enumerate(ALL)][c][2]",
    "{s.stock: s for s in ALL}[c + 1]",
    "max(ALL, key=lambda s: s.stock * (c - 1))",
    "min(ALL, key=lambda s: (s.stock - c) ** 2)",
    "sorted(ALL, key=lambda s: s.stock * (1 - c))[0]",
]
OF_DICTS = ["d.get(KEY)", "d.get(KEY, d[KEY])", "d.setdefault(KEY, d[KEY])"]
CASES = [(kind, taken) for kind in MADE for taken in TAKEN + (OF_DICTS if "dict" in kind else [])]


def module_of(path: Path, text: str) -> ModuleType:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.share(10)
@pytest.mark.promotion("standard")
@pytest.mark.parametrize(("kind", "taken"), CASES, ids=[f"{kind}: {taken}" for kind, taken in CASES])
def test_changes_are_seen(kind: str, taken: str, tmp_path: Path) -> None:
    made, values, key, keys = MADE[kind]
    taken = taken.replace("ALL", values).replace("KEY", key)
    stocks = ", ".join(f"d[{each}].stock" for each in keys)
    change = "sell()" if len(taken) % 2 else "stock -= 10"
    fn = module_of(tmp_path / "elements.py", MODULE.format(made=made, taken=taken, change=change, stocks=stocks)).f
    result = pcbatch.batch(fn).run(np.arange(3, dtype=np.int32))
    found = list(zip(*(np.asarray(column).tolist() for column in result.value), strict=True))
    for c, status in enumerate(result.status.tolist()):
        try:
            assert (status, found[c]) == (0, fn(c))
        except (IndexError, KeyError):
            assert status == int(pcbatch.Status.ERROR)
