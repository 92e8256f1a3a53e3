"""Methods of Python's containers, a row each: what is said of one is so in Python, and lanes do what Python does."""

from __future__ import annotations

import importlib.util
from collections import Counter, OrderedDict, deque
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pcbatch
from pcbatch.data.catalogue import facts

MADE: dict[str, tuple[type, str]] = {
    "list": (list, "[0, 1, 2, 3, 0][: n + 2]"),
    "deque": (deque, "deque([0, 1, 2, 3, 0][: n + 2])"),
    "set": (set, "set([0, 1, 2, 3][: n + 2])"),
    "frozenset": (frozenset, "frozenset([0, 1, 2, 3][: n + 2])"),
    "dict": (dict, "dict([(0, 4), (1, 5), (2, 6), (3, 7)][: n + 2])"),
    "Counter": (Counter, "Counter([0, 1, 2, 3, 0][: n + 2])"),
    "OrderedDict": (OrderedDict, "OrderedDict([(0, 4), (1, 5), (2, 6), (3, 7)][: n + 2])"),
}
"""By kind of container its class, and how a program makes one that depends on the lane, `n`: of 2 elements at least."""

METHODS: dict[str, dict[str, str]] = {
    "list": {
        "append": "c.append(n)",
        "clear": "c.clear()",
        "copy": "d = c.copy(); d.append(9); t = len(d)",
        "count": "t = c.count(1)",
        "extend": "c.extend([n, 7])",
        "index": "t = c.index(1)",
        "insert": "c.insert(n - 2, 8)",
        "pop": "t = c.pop(n % 2)",
        "remove": "c.remove(n % 2)",
        "reverse": "c.reverse()",
        "sort": "c.sort(key=lambda v: v * 7 % 5)",
    },
    "deque": {
        "append": "c.append(n)",
        "appendleft": "c.appendleft(n)",
        "clear": "c.clear()",
        "copy": "d = c.copy(); d.append(9); t = len(d)",
        "count": "t = c.count(1)",
        "extend": "c.extend([n, 7])",
        "extendleft": "c.extendleft([n, 7])",
        "index": "t = c.index(1)",
        "insert": "c.insert(1, 8)",
        "pop": "t = c.pop()",
        "popleft": "t = c.popleft()",
        "remove": "c.remove(n % 2)",
        "reverse": "c.reverse()",
        "rotate": "c.rotate(n)",
    },
    "set": {
        "add": "c.add(n + 5)",
        "clear": "c.clear()",
        "copy": "d = c.copy(); d.add(9); t = len(d)",
        "difference": "t = len(c.difference([1, n]))",
        "difference_update": "c.difference_update([1, n])",
        "discard": "c.discard(n % 2)",
        "intersection": "t = len(c.intersection([1, n]))",
        "intersection_update": "c.intersection_update([1, n])",
        "isdisjoint": "t = int(c.isdisjoint([n, 9]))",
        "issubset": "t = int(c.issubset([0, 1, n]))",
        "issuperset": "t = int(c.issuperset([0, n]))",
        "pop": "c.clear(); c.add(n); t = c.pop()",
        "remove": "c.remove(n % 2)",
        "symmetric_difference": "t = len(c.symmetric_difference([1, n]))",
        "symmetric_difference_update": "c.symmetric_difference_update([1, n])",
        "union": "t = len(c.union([1, n]))",
        "update": "c.update([n, 7])",
    },
    "frozenset": {
        "copy": "d = c.copy(); t = len(d)",
        "difference": "t = len(c.difference([1, n]))",
        "intersection": "t = len(c.intersection([1, n]))",
        "isdisjoint": "t = int(c.isdisjoint([n, 9]))",
        "issubset": "t = int(c.issubset([0, 1, n]))",
        "issuperset": "t = int(c.issuperset([0, n]))",
        "symmetric_difference": "t = len(c.symmetric_difference([1, n]))",
        "union": "t = len(c.union([1, n]))",
    },
    "dict": {
        "clear": "c.clear()",
        "copy": "d = c.copy(); d[9] = 1; t = len(d)",
        "get": "t = c.get(n, 5)",
        "items": "t = sum(k * v for k, v in c.items())",
        "keys": "t = sum(k for k in c.keys())",
        "pop": "t = c.pop(n, 5)",
        "popitem": "t = c.popitem()[1]",
        "setdefault": "t = c.setdefault(n + 3, 5)",
        "update": "c.update([(n, 7), (8, n)])",
        "values": "t = sum(v for v in c.values())",
    },
    "Counter": {
        "elements": "t = list(c.elements())",
        "most_common": "t = c.most_common(1)[0][1]",
        "subtract": "c.subtract([n, 7])",
        "total": "t = c.total()",
        "update": "c.update([n, 7])",
    },
    "OrderedDict": {
        "move_to_end": "c.move_to_end(n % 2, last=False)",
        "popitem": "t = c.popitem(last=False)[1]",
    },
}
"""By kind of container and method a statement that calls it, where `t` is what is seen of its value."""

REFUSED = {("Counter", "fromkeys"), ("OrderedDict", "fromkeys"), ("dict", "fromkeys")}
ROWS = [(kind, method) for kind, methods in METHODS.items() for method in methods]
LANES = np.int32([0, 1, 3])


def program(path: Path, kind: str) -> Any:
    """The function that runs the statements of a kind; after a change the container is made again."""
    lines = ["from collections import Counter, OrderedDict, deque", "def f(n):"]
    lines.append(made := f"    c = {MADE[kind][1]}")
    for method in sorted(METHODS[kind], key=lambda method: facts(method).changes):
        shown = "" if not facts(method).changes else ", list(c)" if kind == "deque" else ", c"
        lines += ["    t = 0", f"    {METHODS[kind][method]}", f"    {method} = t{shown}", made if shown else ""]
    path.write_text("\n".join([*lines, f"    return {', '.join(METHODS[kind])},", ""]))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


@pytest.mark.parametrize("kind", METHODS)
def test_lanes_do_what_python_does(kind: str, tmp_path: Path) -> None:
    function = program(tmp_path / f"methods_of_{kind.lower()}.py", kind)
    found, wanted = pcbatch.batch(function)(LANES), [function(int(n)) for n in LANES]
    for k, method in enumerate(METHODS[kind]):
        if facts(method).changes:
            parts = [part.tolist() for part in found[k]]
            assert list(zip(*parts, strict=True)) == [row[k] for row in wanted], method
        else:
            assert found[k].tolist() == [row[k] for row in wanted], method


@pytest.mark.parametrize("kind", MADE)
def test_all_methods_have_a_row(kind: str) -> None:
    cls, base = MADE[kind][0], set(METHODS["dict"] if kind in ("Counter", "OrderedDict") else ())
    methods = {name for name in vars(cls) if name[0] != "_" and callable(getattr(cls, name))}
    assert methods - base - {method for of, method in REFUSED if of == kind} <= set(METHODS[kind])


def before_and_after(kind: str, statement: str, n: int = 3) -> tuple[Any, Any]:
    """A container of Python, and what a statement makes of it."""
    names: dict[str, Any] = {"n": n, "deque": deque, "Counter": Counter, "OrderedDict": OrderedDict}
    names["c"] = eval(MADE[kind][1], names)
    before = deepcopy(names["c"])
    exec(statement, names)
    return before, names["c"]


@pytest.mark.parametrize(("kind", "method"), ROWS)
def test_what_is_said_of_a_method_is_so(kind: str, method: str) -> None:
    before, after = before_and_after(kind, METHODS[kind][method])
    known = facts(method)
    changed = list(before.items()) != list(after.items()) if isinstance(before, dict) else before != after
    assert known.changes == changed
    if isinstance(before, list):
        assert known.grows == (len(after) > len(before) and after[: len(before)] == before)
    if isinstance(before, dict | set):
        stored, dropped = set(after) - set(before), set(before) - set(after)
        assert not (known.only_drops and stored) and not (known.only_stores and dropped)
    if isinstance(before, deque) and known.changes:
        names = {"c": before, "n": 3, "statement": METHODS[kind][method]}
        loop = "for v in c:\n    if len(c) and v == c[0]:\n        exec(statement)"
        if known.moves:
            with pytest.raises(RuntimeError):
                exec(loop, names)
        else:
            exec(loop, names)


@pytest.mark.parametrize(("kind", "method"), [row for row in ROWS if facts(row[1]).iterates])
def test_iterables_are_as_good_as_lists(kind: str, method: str) -> None:
    statement = METHODS[kind][method]
    start, end = statement.index("["), statement.index("]")
    streamed = f"{statement[:start]}(v for v in {statement[start : end + 1]}){statement[end + 1 :]}"
    assert before_and_after(kind, statement)[1] == before_and_after(kind, streamed)[1]


def by_names(n):
    """Methods that have names, and are only called, in nested functions too."""
    out, stack, d = [], [n], {1: 2}
    push, pop = stack.append, stack.pop
    add, get = out.append, d.get

    def note(k):
        add(get(k, k))

    while stack:
        k = pop()
        note(k)
        if k > 0:
            push(k - 1)
    d[1] = 5
    note(1)
    return out[0], out[-1], len(out)


def of_another_list(n):
    out = [n]
    add = out.append
    out = [1]
    add(2)
    return len(out)


def test_methods_that_have_names() -> None:
    found = pcbatch.batch(by_names)(LANES)
    assert list(zip(*(part.tolist() for part in found), strict=True)) == [by_names(int(n)) for n in LANES]
    with pytest.raises(pcbatch.CompileError, match="PCB304"):
        pcbatch.batch(of_another_list)(LANES)
