"""Statements that would change a value in place, or do nothing: what the help tells to write, to the letter, works."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pcbatch.frontend.subset.in_place import METHODS
from tests.diagnostics.following import Module, lanes_of, load, refused, replacement, same

pytestmark = pytest.mark.promotion("standard")

X = np.array([0.75, 1.25, 2.5], np.float32)
N = np.array([0, 2, 1], np.int32)
XS = np.array([[1, 2.5, 0.2], [0.1, 0.7, 0.3], [3, 1, 2]], np.float32)
HEAD = "import jax\nimport jax.numpy as jnp\nimport numpy as np\nimport pcbatch\n\n\n"
PARAMETERS = "x, n, xs"

# What `v` is before, the statement, and which of the helps is followed.
CASES = [
    ("xs * 1.0", "v[0] = x", 0),
    ("xs * 1.0", "v[n] = x", 0),
    ("xs * 1.0", "v[-1] += x", 0),
    ("xs * 1.0", "v[n] -= x", 0),
    ("xs * 1.0", "v[n] *= x", 0),
    ("xs * 1.0", "v[n] /= x", 0),
    ("xs * 1.0", "v[n] **= 2", 0),
    ("xs * 1.0", "v[n] //= x", 0),
    ("xs * 1.0", "v[:2] = x", 0),
    ("xs * 1.0", "v[v > 1] = 0.0", 0),
    ("xs * 1.0", "v[v > 1] += x", 0),
    ("xs * 1.0", "v[~(v > 1)] = x", 0),
    ("xs * 1.0", "v[0:n] = x", 0),
    ("xs * 1.0", "v[n:] *= x", 0),
    ("xs * 1.0", "v[n::2] = x", 0),
    ("xs * 1.0", "v[::n + 1] += x", 0),
    ("xs * 1.0", "v[n], v[0] = v[0], v[n]", 0),
    ("np.outer(xs, [1.0, 2.0])", "v[n][1] = x", 0),
    ("np.outer(xs, [1.0, 2.0])", "v[n, 1] = x", 0),
    ("[1.0, x, 2.0]", "v[0] = x", 2),
    ("[1.0, x, 2.0]", "v[1] *= x + 1", 2),
    ("[1.0, x, 2.0]", "v[-1] = x", 2),
    ("[1.0, x, 2.0]", "v[-2] = x", 2),
    ("{'a': x, 'b': 1.0}", "v['a'] = 2 * x", 0),
    ("{'a': x, 'b': 1.0}", "v['b'] += x", 0),
    ("{1: x, 2: 1.0}", "v[2] = x", 1),
    ("[x]", "v.append(2 * x)", 0),
    ("[x]", "v.extend([x, 1.0])", 0),
    ("[x, 1.0]", "v.insert(1, 3 * x)", 0),
    ("[x, 1.0]", "v.insert(-1, 3 * x)", 0),
    ("[x, 1.0]", "v.insert(5, 3 * x)", 0),
    ("[x, 1.0]", "v.pop()", 0),
    ("[x, 1.0, 2.0]", "v.pop(0)", 0),
    ("[x, 1.0, 2.0]", "v.pop(1)", 0),
    ("[x, 1.0, 2.0]", "v.pop(-1)", 0),
    ("[x, 1.0, 2.0]", "v.pop(-2)", 0),
    ("{'a': x, 'b': 1.0}", "v.pop('a')", 0),
    ("[x, 1.0]", "v.reverse()", 0),
    ("[x, 1.0]", "v.clear()", 0),
    ("[x, 1.0, 2.0 - x]", "v.sort()", 0),
    ("[x, 1.0, 2.0 - x]", "v.sort(reverse=True)", 0),
    ("[x, -1.0, 2.0 - x]", "v.sort(key=abs)", 0),
    ("[x, -1.0, 2.0 - x]", "v.sort(key=lambda w: -w * w, reverse=True)", 0),
    ("{'a': x}", "v.update({'b': x})", 0),
    ("{'a': x}", "v.update(a=1.0, b=x)", 0),
    ("{'a': x}", "v.update([('a', 1.0), ('c', x)], b=x)", 0),
    ("{'a': x}", "v.setdefault('a', 1.0)", 0),
    ("{'a': x}", "v.setdefault('b', 1.0)", 0),
    ("{'a': x, 'b': 1.0}", "v.popitem()", 0),
    ("{'a': x, 'b': 1.0}", "del v['a']", 0),
    ("{1: x, 2: 1.0}", "del v[2]", 0),
    ("[x, 1.0, 2.0]", "del v[1]", 1),
    ("[x, 1.0, 2.0]", "del v[-1]", 1),
    ("[x]", "v += [1.0, x]", 0),
    ("{'a': x}", "v |= {'b': x}", 0),
]


def body(cases: Sequence[tuple[str, str, int]]) -> list[str]:
    """The lines of a function that goes through all cases."""
    lines = []
    for k, (before, statement, _) in enumerate(cases):
        lines += [f"    v{k} = {before}", "    " + re.sub(r"\bv\b", f"v{k}", statement)]
    return [*lines, f"    return ({', '.join(f'v{k}' for k in range(len(cases)))},)"]


def plain(cases: Sequence[tuple[str, str, int]], lane: int) -> Any:
    """What Python gives."""
    module = load("\n".join([HEAD, f"def f({PARAMETERS}):", *body(cases), ""]))
    return module.f(X[lane].item(), N[lane].item(), XS[lane].copy())


def batched(lines: Sequence[str]) -> Module:
    """The program, batched."""
    return load("\n".join([HEAD, "@pcbatch.batch", f"def f({PARAMETERS}):", *lines, ""]))


def test_they_work() -> None:
    lines = body(CASES)
    for _ in range(2):  # what the types show is found when nothing else is wrong
        text = [re.sub(r"\bnp\.outer\(xs, (.*)\)", r"jnp.outer(xs, jnp.array(\1))", line) for line in lines]
        module = batched(text)
        offset = module.text.splitlines().index(f"def f({PARAMETERS}):") + 2
        for fault in refused(module, (X, N, XS)):
            assert fault.primary is not None
            at = fault.primary.loc.line - offset
            help = fault.helps[min(CASES[at // 2][2], len(fault.helps) - 1)]
            text[at] = "    " + written(help)
        lines = text
    module = batched(lines)
    got = module.f(X, N, XS)
    wrong = []
    for lane in range(3):
        for case, one, want in zip(CASES, got, plain(CASES, lane), strict=True):
            if not equal(one, want, lane):
                wrong.append((case, lane, one, want))
    assert not wrong, wrong


def written(help: str) -> str:
    """The code of a help, with what it says to use before."""
    before = re.search(r", with `(k = [^`]+)`", help)
    return replacement(help) if before is None else f"{before[1]}; {replacement(help)}"


def equal(got: Any, want: Any, lane: int) -> bool:
    """A list may have become an array, an element a float32."""
    if isinstance(want, dict):
        return list(got) == list(want) and all(same(lanes_of(got[key], lane), want[key]) for key in want)
    got = [lanes_of(part, lane) for part in got] if isinstance(got, list) else np.asarray(got)[lane]
    return same(list(got), [float(v) if np.ndim(v) == 0 else v for v in want])


def test_every_method_has_been_followed() -> None:
    """But for those of sets, whose help is another way to keep them, and `remove`, which needs a place."""
    followed = {match[1] for _, statement, _ in CASES if (match := re.match(r"v\.(\w+)\(", statement))}
    assert METHODS - followed == {"add", "discard", "remove"}
