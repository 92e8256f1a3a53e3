"""Dicts inside containers keep the order of their keys, which JAX sorts."""

from __future__ import annotations

import dataclasses

import pytest

import pcbatch
from tests.oracles.python_programs import Refused, check_stages, prepare
from tests.programs.container_programs import PythonProgram

pytestmark = [pytest.mark.promotion("standard")]

INTEGERS = (("a", "int"), ("b", "int"))

ELEMENTS = """\
def f0(a, b):
    xs = [{"z": 1, "a": a}]
    for i in range(b % 3):
        xs.append({"z": i, "a": b})
        xs[0]["z"] += 3
        xs[i] = {"z": 2, "a": xs[0]["a"]}
    xs.extend([{"z": 1, "a": 3}])
    xs.insert(a % 2, {"z": 7, "a": 3})
    xs.sort(key=lambda d: d["a"])
    t = 0
    for d in xs[1:] + xs[:1]:
        for v in d.values():
            t = t * 3 + v
    z = xs.pop()
    for v in max(xs, key=lambda d: d["z"]).values():
        t = t * 3 + v
    return t, xs, {k: v for k, v in z.items()}
"""

INSIDE_OTHERS = """\
from collections import deque

def f0(a, b):
    q = deque()
    g = [[{"z": 1, "a": 2}], []]
    for k in range(a % 4):
        q.append({"z": k, "a": (b, {"y": 1, "b": k})})
        g[k % 2].append({"z": 3, "a": b})
    t = 0
    while q:
        d = q.popleft()
        for k, v in d["a"][1].items():
            t = (t * 3 + v) % 1009
        for k in d:
            t = (t * 5 + (1 if k == "z" else 2)) % 1009
        if t > 50 and q:
            q[-1]["z"] += 1
    return t, g
"""

VALUES_OF_DICTS = """\
def f0(a, b):
    d = {a: {"z": 1, "a": 2}}
    t = 0
    for e in (d.get(b, {"z": 4, "a": 5}), d.setdefault(b, {"z": 4, "a": 7})):
        for v in e.values():
            t = t * 3 + v
    g = d.pop(a, None)
    if g is not None:
        for v in g.values():
            t = t * 3 + v
    for k, v in d.items():
        for w in v.items():
            t = t * 3 + w[1]
    return t
"""

CHOSEN = """\
def f0(a, b):
    xs = [{"z": 1, "a": 2}, {"z": 3, "a": 4}]
    q = None
    if a > 2:
        q = {"z": 1, "a": b}
    t = 0
    for v in xs[a % 2].values():
        t = t * 3 + v
    if q is not None:
        for k, v in q.items():
            t = t * 3 + v
    return t
"""

PROGRAMS = {"elements": ELEMENTS, "inside others": INSIDE_OTHERS, "values of dicts": VALUES_OF_DICTS, "chosen": CHOSEN}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_dicts_keep_the_order_of_their_keys(text: str) -> None:
    check_stages(prepare(PythonProgram(text, INTEGERS), 1187, 5), 16)


OTHER_ORDER = """\
def f0(a, b):
    xs = [{"z": 1, "a": 2}]
    if a > 2:
        xs.append({"a": b, "z": 3})
    return xs
"""


def test_a_list_of_dicts_whose_keys_differ_in_their_order_is_refused() -> None:
    with pytest.raises(Refused):
        check_stages(prepare(PythonProgram(OTHER_ORDER, INTEGERS), 1187, 5), 16)


@dataclasses.dataclass(order=True)
class Chained:
    """An object whose order asks for that of the next one."""

    cost: int
    after: Chained | None = None


def test_an_order_that_goes_down_a_chain_is_refused() -> None:
    @pcbatch.batch
    def less(xs):
        last = None
        for x in xs:
            last = Chained(x, last)
        return Chained(1) < last

    with pytest.raises(pcbatch.CompileError, match=r"(?s)hold others of Chained.*`field\(compare=False\)`"):
        less(pcbatch.ragged([[1, 2], [3]]))
