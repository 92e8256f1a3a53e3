"""Changes that raise inside a `try` leave objects as they are in plain Python at the moment of the raise."""

from __future__ import annotations

import importlib.util
from collections import OrderedDict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.share(5)


def taken(k, q):
    items, failed = {1: 5, 2: 7}, False
    try:
        items[k] -= q
    except KeyError:
        failed = True
    return items.get(1, -1), items.get(k, -1), len(items), k in items, failed


def twice(k, q):
    log, items = 0, {1: 5, 2: 7}
    for _ in range(2):
        try:
            items[k] += q
            log += 1
        except KeyError:
            log += 100
    return log, sum(items.values())


def moved(k, q):
    order = OrderedDict()
    for each in range(3):
        order[each] = each
    try:
        order.move_to_end(k, last=q > 1)
    except KeyError:
        return -1, len(order), list(order)[0], list(order)[-1]
    return 0, len(order), list(order)[0], list(order)[-1]


@pytest.mark.parametrize("emitter", ["scalar", "guard"])
@pytest.mark.parametrize("function", [taken, twice, moved])
def test_as_in_python(function: Any, emitter: str) -> None:
    ks, qs = np.array([1, 9, 2, 0], np.int32), np.array([1, 2, 3, 1], np.int32)
    found = pcbatch.batch(function, plan=pcbatch.Plan(emitter=emitter))(ks, qs)
    for lane, (k, q) in enumerate(zip(ks.tolist(), qs.tolist(), strict=True)):
        assert [np.asarray(x)[lane].item() for x in found] == list(function(k, q))


KNOWN, GROWN = "xs = [3, 1, 2]", "xs = [j * 2 % 5 for j in range(q + 2)]"
SEQUENCE = (
    "xs[0], xs[k] = xs[k], xs[0]", "xs[k], xs[0] = xs[0], xs[k]", "xs[k] = 9", "xs[0] = xs[k] = 9",
    "xs[0], xs[k] = 8, 9",
    "del xs[k]", "del xs[0], xs[k]", "xs.remove(k)", "xs.append(xs.index(k))", "xs[1] %= k", "xs[k] += 4",
    "xs[k] //= k",
    "xs[0] += 6 // k", "xs.append(6 // k)", "xs.insert(k, 6 // k)", "xs.extend(gen(k, q))",
    "xs.extend(map(bad, (3, 2, 1)))",
    "xs.extend(6 // (v - k) for v in range(4))", "xs += gen(k, q)", "xs += (6 // (v - k) for v in (3, 2, 1))",
)  # fmt: skip
LIST = (
    *SEQUENCE, "xs[::2] = [9] * k", "xs[0:1] = gen(k, q)", "xs.pop(k)", "xs.pop(-k - 1)", "xs.append(xs.pop(k))",
    "xs.sort(key=lambda v: 6 // (v - k))", "xs.sort(key=lambda v: math.log(v - k + 1))", "heapq.heappush(xs, 6 // k)",
    "while True: heapq.heappop(xs)", "xs.clear(); heapq.heapreplace(xs, 3)", "bisect.insort(xs, k, lo=k - 1)",
    "while True: xs.pop()",
)  # fmt: skip
DEQUE = (*SEQUENCE, "xs.insert(1, 9)", "xs.extendleft(gen(k, q))", "while True: xs.popleft()", "xs.rotate(6 // k)")
DICT = (
    "d[5] = d[k]", "d[k] = 6 // k", "d[1], d[k] = d[k], d[1]", "d[k], d[1] = d[1], d[k]", "del d[k]", "d.pop(k)",
    "d[k] += 4",
    "d[1] %= k", "d[k] %= k", "d[8] %= k", "d.setdefault(k, 6 // k)", "while True: d.popitem()",
    "d.update((v, 6 // (v - k)) for v in range(4))", "d |= {v: 6 // (v - k) for v in (3, 2, 1)}",
)  # fmt: skip
SET = (
    "s.remove(k)", "s.add(6 // k)", "s.update(gen(k, q))", "s.update([3, 4], gen(k, q), [8])",
    "s.update(map(bad, (3, 2, 1)))",
    "s.difference_update(gen(k, q))", "s.intersection_update(gen(k, q))", "s.symmetric_difference_update(gen(k, q))",
)  # fmt: skip
BYTES = (
    "xs[k] = 9", "xs[0] = 250 + k", "xs.append(250 + k)", "xs.extend([1, 250 + k])", "xs.extend(gen(k, q))",
    "xs.pop(k)",
    "xs[0:1] = [1, 250 + k]", "del xs[k]", "xs.remove(k)", "xs[0], xs[k] = xs[k], xs[0]", "xs[0] += 150 * k",
    "xs[0] //= k",
)  # fmt: skip
NESTED = (
    "g[0][0], g[k][1] = g[k][1], g[0][0]", "g[0], g[k] = g[k], g[0]", "g[k][k] = 9", "g[k][0] %= k", "g[1].pop(k)",
    "g[q % 2].sort(key=lambda v: 6 // (v - k))", "g[q % 2].extend(gen(k, q))", "g[q % 2] += gen(k, q)", "del g[1][k]",
)  # fmt: skip
OBJECT = (
    "b.v %= k", "b.v = 6 // k", "b.xs[k] += 5", "b.xs[0] %= k", "b.xs[0], b.xs[k] = b.xs[k], b.xs[0]",
    "b.v, b.xs[k] = b.xs[k], b.v",
    "b.xs.sort(key=lambda v: 6 // (v - k))", "b.xs.extend(gen(k, q))",
)  # fmt: skip
TABLE: dict[str, tuple[str, tuple[str, ...], str]] = {
    "known list": (KNOWN, (*SEQUENCE[:3], *SEQUENCE[9:12], *LIST[-9:-4]), "digest(xs)"),
    "list": (GROWN, LIST, "digest(xs)"),
    "deque with maxlen": ("xs = deque([3, 1, 2], maxlen=q)", DEQUE, "digest(xs)"),
    "known dict": ("d = {1: 5, 2: 7}", DICT, "digest(d) + digest(list(d.values()))"),
    "dict": ("d = {q: 5, 3: k}", DICT, "digest(d) + digest(list(d.values()))"),
    "defaultdict": ("d = defaultdict(int); d[1] = 5", DICT[6:], "digest(d) + digest(list(d.values()))"),
    "Counter": (
        "d = Counter([1, 2, 2])",
        (*DICT[2:10], "d.update(gen(k, q))", "d.subtract(gen(k, q))"),
        "digest(list(d.values()))",
    ),
    "OrderedDict": (
        "d = OrderedDict(); d[1] = 5; d[2] = 7",
        (*DICT[2:4], *DICT[-3:], "d.move_to_end(k)", "d.move_to_end(k, last=False)"),
        "digest(d) + digest(list(d.values()))",
    ),
    "set": ("s = {1, 2}", SET, "digest(sorted(s))"),
    "set of lanes": ("s = {q, 3}", SET, "digest(sorted(s))"),
    "bytearray": ("xs = bytearray(b'abc')", BYTES, "digest(xs)"),
    "nested": ("g = [[1, 2], [3, 4]]", NESTED, "digest(g[0]) + digest(g[1]) * 3"),
    "object": ("b = Box(8)", OBJECT, "b.v + digest(b.xs)"),
    "variable": ("x = 7", ("x %= k", "x //= k", "x <<= k - 1"), "x"),
}
HEAD = """
import bisect, heapq, math
from collections import Counter, OrderedDict, defaultdict, deque

def bad(x):
    if x == 2:
        raise ValueError("no")
    return -x

def gen(k, q):
    yield 5
    yield 6 // k
    if q == 1:
        raise ValueError("x")
    yield 7

def digest(xs):
    r = 1
    for x in xs:
        r = (r * 11 + x) % 100003
    return r

class Box:
    def __init__(self, v):
        self.v, self.xs = v, [v, v + 1]

def f(k, q):
    results = []
"""
CLASSES = ("IndexError", "KeyError", "ZeroDivisionError", "ValueError")
GROUP = 12  # changes of one function


def module(path: Path, setup: str, changes: tuple[str, ...], shown: str) -> ModuleType:
    """Return a module with a function that makes the changes, each of a new object, in a `try` that catches all."""
    lines = [HEAD]
    for change in changes:
        lines += [f"    {setup}", "    code = 0", "    try:", f"        {change}"]
        for code, name in enumerate(CLASSES, 1):
            lines += [f"    except {name}:", f"        code = {code}"]
        lines += [f"    results.append({shown} * 5 + code)"]
    path.write_text("\n".join([*lines, "    return tuple(results)"]))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


PARTS = [(kind, k) for kind, (_, changes, _) in TABLE.items() for k in range(0, len(changes), GROUP)]


@pytest.mark.parametrize(("kind", "first"), PARTS)
def test_an_object_is_as_it_was_at_the_raise(kind: str, first: int, tmp_path: Path) -> None:
    setup, changes, shown = TABLE[kind]
    changes = changes[first : first + GROUP]
    f = module(tmp_path / f"changes_{first}.py", setup, changes, shown).f
    examples = [(k, q) for k in (0, 1, 2, 5) for q in (1, 3)]
    columns = [np.array(column, np.int32) for column in zip(*examples, strict=True)]
    found = pcbatch.batch(f)(*columns)
    for lane, example in enumerate(examples):
        wanted = f(*example)
        for change, lanes, one in zip(changes, found, wanted, strict=True):
            assert (change, example, lanes[lane]) == (change, example, one)
