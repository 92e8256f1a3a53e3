"""What one operation of Python costs a lane alone, against CPython: the list in which what is slow stands out.

    NPROC=1 python -m benchmarks.operations [--only dict] [--slow]

Each operation stands in a loop of 200 rounds over a list of six numbers, in 64 lanes, and is compared with the loop
without it. CPU ns of one operation, the least of fifteen calls for ours and of three for CPython; the results of both
are compared first. Below a nanosecond is noise. `--slow` prints those alone that CPython does as fast or faster.
"""

from __future__ import annotations

import argparse
import bisect
import heapq
import linecache
import math
import os
import random
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("NPROC", "1")

import jax
import numpy as np

import pcbatch

LANES, ROUNDS = 64, 200
HEAD = "| operation | ours ns | CPython ns | times as fast |\n|---|---:|---:|---:|"

FLOATS = """math.sqrt(x); math.hypot(x, y); math.exp(-x); math.log(x); math.log2(x); math.log10(x); math.pow(x, y)
x**y; x**2; x**0.5; math.sin(x); math.tan(x); math.atan2(x, y); math.asin(0.1 * y); math.sinh(y); math.tanh(y)
math.floor(x); int(x); round(x); round(x, 2); abs(x); x // y; x % y; math.fmod(x, y); max(x, y)
math.dist((x, y), (y, x)); math.gamma(y); math.lgamma(x); math.erf(y); math.cbrt(x); math.ldexp(x, 3)
math.fsum((x, y, 1.0)); x / y
(x, y) < (y, x)"""
INTEGERS = """i * j; i // j; i % j; i**2; pow(i, 3, 97); i << 2; divmod(i, j)[1]; min(i, j); math.gcd(i, j)
math.isqrt(i); math.comb(9, j); math.factorial(j); i.bit_length(); i / j; int(str(j)); ord(chr(i % 90 + 33))
sum(range(j)); [3, 1, 2][i % 3]; "abc"[i % 3] == "b"; {1: 2, 3: 4, 5: 6}.get(j, 0); j in (1, 2, 3); j in {1, 2, 3}
larger(i, j)
factorial(j % 5)"""
LISTS = """xs[i % n]; len(xs); sum(xs); max(xs); xs.index(xs[n - 1]); xs.count(3); 3 in xs; sorted(xs)[0]
sorted(xs, key=lambda v: -v)[0]; xs[1:3][0]; xs[::-1][0]; [v + 1 for v in xs][0]; [v for v in xs if v > 2][0]
sum(v * v for v in xs); any(v > 8 for v in xs); (xs + xs)[0]; (xs * 2)[0]; max(xs, key=lambda v: -v)
list(zip(xs, xs))[0][0]; list(enumerate(xs))[1][0]; len(set(xs)); xs == xs[:]; bisect.bisect_left(xs, 5)
len("".join([str(v) for v in xs]))
sum(squares(xs))"""
STATEMENTS: dict[str, tuple[str, str]] = {
    "append, pop": ("ys = [1]", "ys.append(i); total += ys.pop()"),
    "pop(0), append": ("ys = [1, 2, 3, 4, 5]", "total += ys.pop(0); ys.append(i)"),
    "insert(0, x), pop": ("ys = [1, 2, 3, 4, 5]", "ys.insert(0, i); total += ys.pop()"),
    "del ys[2], append": ("ys = [1, 2, 3, 4, 5]", "del ys[2]; ys.append(i); total += ys[2]"),
    "ys[k] = x": ("ys = [1, 2, 3, 4, 5]", "ys[i % 5] = i; total += ys[0]"),
    "grid[a][b] += 1": ("g = [[0] * 4 for _ in range(4)]", "g[i % 4][j % 4] += 1; total += g[0][0]"),
    "ys[1:3] = [a, b]": ("ys = [1, 2, 3, 4, 5]", "ys[1:3] = [i, j]; total += ys[2]"),
    "sort": ("ys = [5, 2, 4, 1, 3]", "ys.sort(); total += ys[0]; ys[i % 5] = j"),
    "deque": ("ys = deque([1, 2])", "ys.append(i); total += ys.popleft()"),
    "heappush, heappop": ("ys = [1, 2, 3, 4]", "heapq.heappush(ys, i % 7); total += heapq.heappop(ys)"),
    "the same of tuples": ("ys = [(1, 1), (2, 2)]", "heapq.heappush(ys, (i % 7, j)); total += heapq.heappop(ys)[0]"),
    "d[k] = x, d[k]": ("d = {}", "d[i % 8] = j; total += d[i % 8]"),
    "d[k] = d.get(k, 0) + 1": ("d = {}", "d[i % 8] = d.get(i % 8, 0) + 1; total += 1"),
    "d[a, b] = x, d[a, b]": ("d = {}", "d[(i % 4, j % 4)] = i; total += d[(i % 4, j % 4)]"),
    "d[k] = x, del d[k]": ("d = {}", "d[i % 8] = j; del d[i % 8]; total += len(d)"),
    "sum of d.items()": ("d = {1: 2, 3: 4, 5: 6}", "d[j] = i % 9; total += sum(v for k, v in d.items())"),
    "max(d, key=d.get)": ("d = {1: 2, 3: 4, 5: 6}", "d[j] = i % 9; total += max(d, key=d.get)"),
    "list(d)": ("d = {1: 2, 3: 4, 5: 6}", "d[j] = i; total += len(list(d))"),
    "sorted(d.items())": ("d = {1: 2, 3: 4}", "d[j % 4] = i; total += sorted(d.items(), key=lambda p: p[1])[0][0]"),
    "defaultdict(int)": ("d = defaultdict(int)", "d[i % 8] += 1; total += d[1]"),
    "a dict of words": ("d = {'a': 1, 'b': 2}", "k = 'a' if j % 2 else 'b'; d[k] += 1; total += d[k]"),
    "s.add, in": ("s = set()", "s.add(i % 8); total += j in s"),
    "s.add((a, b)), in": ("s = set()", "s.add((i % 4, j % 4)); total += (j, i) in s"),
    "s.add, s.discard": ("s = set()", "s.add(i % 8); s.discard(j); total += len(s)"),
    "s & {...}": ("s = {1, 2, 3}", "s.add(i % 8); total += len(s & {1, 2, 5})"),
    "text in text": ("t = 'hello world'", "c = chr(97 + j); total += c in t"),
    "t[:k] == u[:k]": ("t = 'hello'; u = 'hella'", "total += t[: i % 5] == u[: i % 5]"),
    "split": ("t = 'the cat sat on the mat'", "t = t + ' ' if i % 2 else t.strip(); total += len(t.split())"),
    "replace": ("t = 'hello world'", "c = chr(97 + j); total += len(t.replace(c, 'zz'))"),
    "int(t[:k])": ("t = '1234'", "total += int(t[: 1 + i % 3])"),
    "for c in text": ("t = 'hello world'", "c = chr(97 + j)\n        for u in t:\n            total += u == c"),
    "o.x += 1": ("o = Point(1, 2)", "o.x += i; total += o.y"),
    "Point(a, b)": ("o = Point(1, 2)", "o = Point(i, j); total += o.x"),
    "a list of objects": ("os = [Point(1, 2), Point(3, 4)]", "os[i % 2].x += 1; total += os[0].x"),
    "if, elif, else": ("", "total += 1 if i % 3 == 0 else 2 if i % 3 == 1 else 3"),
    "try, except": (
        "d = {1: 2}",
        "try:\n            total += d[i % 3]\n        except KeyError:\n            total += 1",
    ),
    "a product of matrices": (
        "g = [[1, 2], [3, 4]]",
        "g = [[sum(g[a][k] * g[k][b] for k in range(2)) % 7 for b in range(2)] for a in range(2)]; total += g[0][0]",
    ),
    "Counter(text)": ("t = 'hello'", "total += Counter(t[: 1 + i % 4])['l']"),
}
LOOP = """
def loop_{number}(xs, rounds):
    n = len(xs)
    total = {zero}
    {setup}
    i = 1
    while i <= rounds:
        j = xs[i % n] + 1
        {numbers}
        {body}
        i += 1
    return total
"""


@dataclass
class Point:
    """An object of the loops."""

    x: int
    y: int


def larger(a, b):
    """Return the larger one of two numbers."""
    if a > b:
        return a
    return b


def factorial(n):
    """Return a factorial, by recursion."""
    return 1 if n <= 1 else n * factorial(n - 1)


def squares(ys):
    """Yield the squares of numbers."""
    for y in ys:
        yield y * y


MODULES = (bisect, heapq, math)
NAMES = {module.__name__: module for module in MODULES} | {
    each.__name__: each for each in (Counter, defaultdict, deque, Point, larger, factorial, squares)
}


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation in a loop: `setup` stands before it, and `body` adds to `total`, which is a float with `floats`."""

    name: str
    setup: str
    body: str
    floats: bool = False

    def source(self, number: int) -> str:
        """Return the function of the loop."""
        numbers = "x, y = 0.5 + 0.25 * j, 0.3 * (i % 7) + 0.1" if self.floats else "pass"
        zero, setup = "0.0" if self.floats else "0", self.setup or "pass"
        return LOOP.format(number=number, zero=zero, setup=setup, numbers=numbers, body=self.body)


def operations() -> Iterator[Operation]:
    """Yield all of them; those in front are the loops without an operation."""
    yield Operation("", "", "total += x + y", floats=True)
    yield Operation("", "", "total += i + j")
    for texts, end, floats in ((FLOATS, "", True), (INTEGERS, "", False), (LISTS, "; xs[0] = j % 9", False)):
        for text in texts.replace("\n", ";").split(";"):
            yield Operation(text.strip(), "", f"total += {text.strip()}{end}", floats)
    for name, (setup, body) in STATEMENTS.items():
        yield Operation(name, setup, body)


def functions(found: list[Operation]) -> list[Callable[..., Any]]:
    """Return the functions of the loops, whose source the compiler finds."""
    source = "".join(operation.source(number) for number, operation in enumerate(found))
    name, names = "<operations>", {"__name__": __name__, **NAMES}
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), names)
    return [names[f"loop_{number}"] for number in range(len(found))]  # type: ignore[misc]


def least(call: Callable[[], Any], times: int) -> float:
    """Return the CPU ns of a round in the fastest of so many calls."""
    found = []
    for _ in range(times):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found) / LANES / ROUNDS * 1e9


def measure(function: Callable[..., Any]) -> tuple[float, float]:
    """Return the ns of a round of a loop, ours and CPython's; raises SystemExit where they give other results."""
    rng = random.Random(0)
    rows = [[rng.randint(0, 8) for _ in range(6)] for _ in range(LANES)]
    lists, rounds, ours = pcbatch.ragged(rows), np.full(LANES, ROUNDS, np.int32), pcbatch.batch(function)
    got, want = np.asarray(ours(lists, rounds)), [function(list(row), ROUNDS) for row in rows]
    if not np.allclose(got, want, rtol=1e-2):
        raise SystemExit(f"{function.__name__} gives {got} instead of {want}")
    theirs = least(lambda: [function(list(row), ROUNDS) for row in rows], 3)
    return least(lambda: ours(lists, rounds), 15), theirs


def main() -> None:
    """Print a line for each operation."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="the operations with this in their name")
    parser.add_argument("--slow", action="store_true", help="those alone that CPython does as fast or faster")
    given = parser.parse_args()
    found = [operation for operation in operations() if not operation.name or given.only in operation.name]
    empty: dict[bool, tuple[float, float]] = {}
    print(HEAD)
    for operation, function in zip(found, functions(found), strict=True):
        times = measure(function)
        jax.clear_caches()
        if not operation.name:
            empty[operation.floats] = times
            continue
        ours, theirs = (max(0.1, all_ - loop) for all_, loop in zip(times, empty[operation.floats], strict=True))
        if not given.slow or theirs <= ours:
            print(f"| `{operation.name}` | {ours:.1f} | {theirs:.1f} | {theirs / ours:.2f} |", flush=True)


if __name__ == "__main__":
    main()
