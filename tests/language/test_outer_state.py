"""Changes of objects outside of a program, by helpers, methods and classes: they happen once, while compiling."""

from __future__ import annotations

import collections
import functools
import heapq
import itertools
import linecache
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.data.object_parts import OURS
from pcbatch.lowering.typing import outer_state

SOURCE = """
LOG, TABLE, SEEN, ARRAY = [], {}, set(), np.zeros(3, np.int32)
QUEUE, COUNTER, DEFAULTS = collections.deque(), collections.Counter(), collections.defaultdict(int)

class Made:
    made = 0
    def __init__(self, v):
        self.v = v
        Made.made += 1

class Inherits(Made):
    pass

class Named:
    numbers = itertools.count()
    def __init__(self, v):
        self.v = v + next(Named.numbers)

class OfType:
    made = 0
    def __init__(self, v):
        type(self).made += 1
        self.v = v + self.made

class Registered:
    registry = {}
    def __init__(self, v):
        self.v = v + len(Registered.registry)
        Registered.registry[len(Registered.registry)] = 1

@dataclass
class Data:
    made = 0
    v: int
    def __post_init__(self):
        Data.made += 1

class Tools:
    n = 0
    @classmethod
    def of_class(cls):
        cls.n += 1
        return cls.n
    @staticmethod
    def static():
        Tools.k = getattr(Tools, "k", 0) + 1
        return Tools.k
    @property
    def hits(self):
        Tools.n += 1
        return Tools.n
    def __len__(self):
        Tools.n += 1
        return Tools.n

class Callable:
    def __init__(self):
        self.n = 0
    def __call__(self, x):
        self.n += 1
        return x + self.n
    def method(self, x):
        self.n += 1
        return x + self.n

one, bound = Callable(), Callable().method
tools = Tools()
numbers = itertools.count()
items = iter([1, 2, 3] * 100)
def forever():
    k = 0
    while True:
        k += 1
        yield k
made = forever()
def closure():
    n = 0
    def inc(x):
        nonlocal n
        n += 1
        return x + n
    return inc
counted = closure()

def to_list(x):
    LOG.append(1)
    return x + len(LOG)
def to_dict(x):
    TABLE["k"] = TABLE.get("k", 0) + 1
    return x + TABLE["k"]
def to_set(x):
    SEEN.add(len(SEEN))
    return x + len(SEEN)
def to_array(x):
    ARRAY[0] += 1
    return x + int(ARRAY[0])
def to_heap(x):
    heapq.heappush(LOG, 1)
    return x + len(LOG)
def to_queue(x):
    QUEUE.appendleft(1)
    return x + len(QUEUE)
def to_counter(x):
    COUNTER["a"] += 1
    return x + COUNTER["a"]
def to_default(x):
    DEFAULTS[1] += 1
    return x + DEFAULTS[1]
def by_name(x):
    xs = LOG
    xs += [1]
    return x + len(xs)
def add_to(xs, x):
    xs.append(1)
    return x + len(xs)
def passed(x):
    return add_to(LOG, x)
def nested(x):
    def g(y):
        LOG.append(2)
        return y + len(LOG)
    return g(x)
def attribute(x):
    attribute.calls = getattr(attribute, "calls", 0) + 1
    return x + attribute.calls
def by_setattr(x):
    setattr(Tools, "n", Tools.n + 1)
    return x + Tools.n
def by_globals(x):
    globals()["LOG"] = [1]
    return x
by_partial = functools.partial(lambda xs, x: (xs.append(1), x + len(xs))[1], [])
unread = lambda x: (LOG.append(3), x + 1)[1]
"""

CALLS = {
    "LOG": ["to_list(i)", "to_heap(i)", "by_name(i)", "passed(i)", "nested(i)", "unread(i)", "sum(map(to_list, [i]))"],
    "TABLE": ["to_dict(i)"],
    "SEEN": ["to_set(i)"],
    "ARRAY": ["to_array(i)"],
    "QUEUE": ["to_queue(i)"],
    "COUNTER": ["to_counter(i)"],
    "DEFAULTS": ["to_default(i)"],
    "attribute.calls": ["attribute(i)"],
    "Tools.n": ["by_setattr(i)", "Tools.of_class()", "tools.hits", "len(tools)"],
    "Tools.k": ["Tools.static()"],
    "one.n": ["one(i)", "one.method(i)"],
    "bound.__self__.n": ["bound(i)"],
    "n": ["counted(i)"],
    "numbers": ["i + next(numbers)"],
    "items": ["i + next(items)"],
    "made": ["i + next(made)"],
    "by_partial.args[0]": ["by_partial(i)"],
    "Made.made": ["Made(i).v + Made.made", "Inherits(i).v + Made.made"],
    "Named.numbers": ["Named(i).v"],
    "OfType.made": ["OfType(i).v"],
    "Registered.registry": ["Registered(i).v"],
    "Data.made": ["Data(i).v + Data.made"],
}


def defined(text: str, name: str = "f") -> Callable[..., Any]:
    """Return the function `f` of a text, in whose module the objects above are new."""
    file = f"<outer state {name}>"
    source = SOURCE + text
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module = types.ModuleType(f"outer_state_{len(linecache.cache)}")
    sys.modules[module.__name__] = module  # where `dataclass` looks for it
    known = {"collections": collections, "functools": functools, "heapq": heapq, "itertools": itertools}
    vars(module).update(known, dataclass=dataclass, jnp=jnp, np=np)
    exec(compile(source, file, "exec"), vars(module))
    del sys.modules[module.__name__]
    return module.f  # type: ignore[no-any-return]


@pytest.fixture(params=["checkout", "installed"])
def package(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """This package in a checkout, and in the folder of installed packages, which are not looked at."""
    if request.param == "installed":
        monkeypatch.setattr(outer_state, "INSTALLED", (*outer_state.INSTALLED, OURS))


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(("name", "call"), [(name, call) for name, calls in CALLS.items() for call in calls])
def test_a_change_is_refused(name: str, call: str) -> None:
    f = defined(f"def f(n):\n    s = 0\n    for i in range(n):\n        s += {call}\n    return s\n", call)
    with pytest.raises(pcbatch.CompileError) as caught:
        pcbatch.batch(f)(jnp.array([1, 3]))
    assert caught.value.diagnostics[0].code in ("PCB117", "PCB115", "PCB330")
    if caught.value.diagnostics[0].notes:
        assert f"`{name}` does not belong to a lane" in caught.value.diagnostics[0].title
    assert caught.value.diagnostics[0].primary is not None


def test_globals_of_a_helper_are_refused() -> None:
    f = defined("def f(n):\n    return by_globals(n)\n", "globals")
    with pytest.raises(pcbatch.CompileError, match="globals"):
        pcbatch.batch(f)(jnp.array([1, 3]))


TABLES = {
    "a table that is filled once": """
def table(k):
    if k not in TABLE:
        TABLE[k] = [i * i for i in range(k)]
    return jnp.array(TABLE[k])
def f(n):
    s = 0
    for i in range(n):
        s += table(4)[i]
    return s
""",
    "an attribute that is computed when it is needed": """
class Lazy:
    def __init__(self):
        self._w = None
    @property
    def w(self):
        if self._w is None:
            self._w = np.arange(5)
        return self._w
    @functools.cached_property
    def z(self):
        return np.arange(3) + 1
lazy = Lazy()
def weight(i):
    return jnp.asarray(lazy.w)[i] * jnp.asarray(lazy.z)[1]
def f(n):
    s = 0
    for i in range(n):
        s += weight(i)
    return s
""",
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_filled_once(name: str) -> None:
    batched = pcbatch.batch(defined(TABLES[name], name))
    inputs = [0, 1, 3, 2]
    assert batched(jnp.array(inputs)).tolist() == [int(batched.plain(x)) for x in inputs]


def test_a_first_call_that_differs_is_refused() -> None:
    text = """
def first(x):
    if not LOG:
        LOG.append(1)
        return x + 100
    return x
def f(n):
    s = 0
    for i in range(n):
        s += first(i)
    return s
"""
    with pytest.raises(pcbatch.CompileError, match="`LOG` does not belong to a lane"):
        pcbatch.batch(defined(text, "first"))(jnp.array([1, 3]))
