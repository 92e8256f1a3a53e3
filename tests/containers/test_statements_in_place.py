"""Statements that change a list, a dict or an array in place: each leaves what it leaves in plain Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.diagnostics.following import Module, lanes_of, load, same

pytestmark = pytest.mark.promotion("standard")

X = np.array([0.75, 1.25, 2.5], np.float32)
N = np.array([0, 2, 1], np.int32)
XS = np.array([[1, 2.5, 0.2], [0.1, 0.7, 0.3], [3, 1, 2]], np.float32)
HEAD = "import jax\nimport jax.numpy as jnp\nimport numpy as np\nimport pcbatch\n\n\n"
PARAMETERS = "x, n, xs"

# What `v` is before, and the statement.
CASES = [
    ("xs * 1.0", "v[0] = x"),
    ("xs * 1.0", "v[n] = x"),
    ("xs * 1.0", "v[-1] += x"),
    ("xs * 1.0", "v[n] -= x"),
    ("xs * 1.0", "v[n] *= x"),
    ("xs * 1.0", "v[n] /= x"),
    ("xs * 1.0", "v[n] **= 2"),
    ("xs * 1.0", "v[n] //= x"),
    ("xs * 1.0", "v[:2] = x"),
    ("xs * 1.0", "v[v > 1] = 0.0"),
    ("xs * 1.0", "v[v > 1] += x"),
    ("xs * 1.0", "v[~(v > 1)] = x"),
    ("xs * 1.0", "v[0:n] = x"),
    ("xs * 1.0", "v[n:] *= x"),
    ("xs * 1.0", "v[n::2] = x"),
    ("xs * 1.0", "v[::n + 1] += x"),
    ("xs * 1.0", "v[n], v[0] = v[0], v[n]"),
    ("[x, 1.0]", "v.remove(1.0)"),
    ("np.outer(xs, [1.0, 2.0])", "v[n][1] = x"),
    ("np.outer(xs, [1.0, 2.0])", "v[n, 1] = x"),
    ("[1.0, x, 2.0]", "v[0] = x"),
    ("[1.0, x, 2.0]", "v[1] *= x + 1"),
    ("[1.0, x, 2.0]", "v[-1] = x"),
    ("[1.0, x, 2.0]", "v[-2] = x"),
    ("{'a': x, 'b': 1.0}", "v['a'] = 2 * x"),
    ("{'a': x, 'b': 1.0}", "v['b'] += x"),
    ("{1: x, 2: 1.0}", "v[2] = x"),
    ("[x]", "v.append(2 * x)"),
    ("[x]", "v.extend([x, 1.0])"),
    ("[x, 1.0]", "v.insert(1, 3 * x)"),
    ("[x, 1.0]", "v.insert(-1, 3 * x)"),
    ("[x, 1.0]", "v.insert(5, 3 * x)"),
    ("[x, 1.0]", "v.pop()"),
    ("[x, 1.0, 2.0]", "v.pop(0)"),
    ("[x, 1.0, 2.0]", "v.pop(1)"),
    ("[x, 1.0, 2.0]", "v.pop(-1)"),
    ("[x, 1.0, 2.0]", "v.pop(-2)"),
    ("{'a': x, 'b': 1.0}", "v.pop('a')"),
    ("[x, 1.0]", "v.reverse()"),
    ("[x, 1.0]", "v.clear()"),
    ("[x, 1.0, 2.0 - x]", "v.sort()"),
    ("[x, 1.0, 2.0 - x]", "v.sort(reverse=True)"),
    ("[x, -1.0, 2.0 - x]", "v.sort(key=abs)"),
    ("[x, -1.0, 2.0 - x]", "v.sort(key=lambda w: -w * w, reverse=True)"),
    ("{'a': x}", "v.update({'b': x})"),
    ("{'a': x}", "v.update(a=1.0, b=x)"),
    ("{'a': x}", "v.update([('a', 1.0), ('b', x)], c=x)"),
    ("{'a': x}", "v.setdefault('a', 1.0)"),
    ("{'a': x}", "v.setdefault('b', 1.0)"),
    ("{'a': x, 'b': 1.0}", "v.popitem()"),
    ("{'a': x, 'b': 1.0}", "del v['a']"),
    ("{1: x, 2: 1.0}", "del v[2]"),
    ("[x, 1.0, 2.0]", "del v[1]"),
    ("[x, 1.0, 2.0]", "del v[-1]"),
    ("[x]", "v += [1.0, x]"),
    ("{'a': x}", "v |= {'b': x}"),
]


def body(cases: Sequence[tuple[str, str]]) -> list[str]:
    """The lines of a function that goes through all cases."""
    lines = []
    for k, (before, statement) in enumerate(cases):
        lines += [f"    v{k} = {before}", "    " + re.sub(r"\bv\b", f"v{k}", statement)]
    return [*lines, f"    return ({', '.join(f'v{k}' for k in range(len(cases)))},)"]


def plain(cases: Sequence[tuple[str, str]], lane: int) -> Any:
    """What Python gives."""
    module = load("\n".join([HEAD, f"def f({PARAMETERS}):", *body(cases), ""]))
    return module.f(X[lane].item(), N[lane].item(), XS[lane].copy())


def batched(lines: Sequence[str]) -> Module:
    """The program, batched."""
    return load("\n".join([HEAD, "@pcbatch.batch", f"def f({PARAMETERS}):", *lines, ""]))


def test_they_work() -> None:
    lines = [re.sub(r"\bnp\.outer\(xs, (.*)\)", r"jnp.outer(xs, jnp.array(\1))", line) for line in body(CASES)]
    got = batched(lines).f(X, N, XS)
    wrong = []
    for lane in range(3):
        for case, one, want in zip(CASES, got, plain(CASES, lane), strict=True):
            if not equal(one, want, lane):
                wrong.append((case, lane, one, want))
    assert not wrong, wrong


def equal(got: Any, want: Any, lane: int) -> bool:
    """Whether a lane's value is that of Python, numbers as float32."""
    if isinstance(want, dict):
        return list(got) == list(want) and all(same(lanes_of(got[key], lane), want[key]) for key in want)
    got = [lanes_of(part, lane) for part in got] if isinstance(got, list) else np.asarray(got)[lane]
    return len(got) == len(want) and same(list(got), [float(v) if np.ndim(v) == 0 else v for v in want])
