"""A trace that is used again is what tracing again would give, and what tracing does to the outside is done once."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import pcbatch
from pcbatch.data.objects.tables import with_tables
from pcbatch.errors import CompileError
from pcbatch.frontend.build.kept_primitives import keeping_primitives, kept
from pcbatch.lowering.typing import infer
from pcbatch.lowering.typing.abstract_values import Abstract, known
from pcbatch.lowering.typing.kept_traces import KeptTraces, keeping_traces
from pcbatch.lowering.typing.trace import Traced, trace
from tests.fuzz_python import drawn, through_interpreters
from tests.oracles.python_programs import Endless, Refused

pytestmark = pytest.mark.promotion("standard")
N = np.array([3, 5], np.int32)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of all traces that were used again; each is compared with a new trace."""
    seen: list[str] = []
    get = KeptTraces.get

    def compared(self: KeptTraces, fn: Any, place: Any, ins: Sequence[Abstract], results: int) -> Traced | None:
        found = get(self, fn, place, ins, results)
        if found is not None:
            tables = len(ins) > fn.__code__.co_argcount
            again = trace(with_tables(fn) if tables else fn, ins, results, fn)
            assert described(again) == described(found)
            seen.append(str(found.closed))
        return found

    monkeypatch.setattr(infer.KeptTraces, "get", compared)
    return seen


def described(traced: Traced) -> tuple[Any, ...]:
    jaxpr = re.sub("0x[0-9a-f]{6,}", "0x", str(traced.closed))
    return jaxpr, traced.outs, traced.asked, traced.weak, traced.checks, traced.aliases, traced.repeated


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.share(3)) for seed in range(9)])
def test_random_programs(seed: int, checked: list[str]) -> None:
    try:
        through_interpreters(drawn(seed), seed)
    except (Endless, Refused):
        pass


def test_a_program_with_many_decisions(checked: list[str]) -> None:
    def weight(xs):
        return sum(x for x in xs if x > 1)

    @pcbatch.batch
    def lane(n):
        xs, seen = [], {}
        for k in range(n):
            xs.append(k * n)
            seen[k] = n
        m = max(x for x in xs) if n > 2 else 0
        return m + weight(xs) + len(seen)

    plain = [lane.__wrapped__(int(n)) for n in N]
    lowered = lane.lower(N)
    assert len(checked) > 10
    assert lowered.stages.result is not None
    assert [int(v) for v in lane(N)] == plain


counted = Mock(side_effect=lambda n: n + 1)  # called while it is traced


def test_a_helper_runs_once_though_compilation_starts_again() -> None:
    @pcbatch.batch
    def lane(n):
        m = counted(n)
        return m + sum(k for k in range(m))  # becomes a loop: compilation starts again

    counted.reset_mock()
    lane.lower(N)
    assert counted.call_count == 1


def test_a_draw_is_found_though_compilation_starts_again() -> None:
    def noise():
        return random.gauss(0, 1)

    @pcbatch.batch
    def lane(n):
        return noise() + sum(k for k in range(n))

    with pytest.raises(CompileError, match="PCB318"):
        lane.lower(N)


class Same:
    """Objects that are all equal, as those of many a class of users are."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same)

    def __hash__(self) -> int:
        return 0


def of_object(x: Any) -> Any:
    return x is FIRST


FIRST, SECOND = Same(), Same()


def test_equal_objects_are_not_the_same() -> None:
    with keeping_traces():
        traces, ins = KeptTraces(), (known(FIRST),)
        traces.put(of_object, "place", ins, 1, trace(of_object, ins, 1))
        assert KeptTraces().get(of_object, "place", (known(FIRST),), 1) is not None
        assert KeptTraces().get(of_object, "place", (known(SECOND),), 1) is None
        assert KeptTraces().get(of_object, "place", (known((FIRST,)),), 1) is None


def test_operations_of_one_program_do_not_share_a_trace() -> None:
    with keeping_traces():
        traces, ins = KeptTraces(), (known(2),)
        traces.put(of_object, "one", ins, 1, trace(of_object, ins, 1))
        assert traces.get(of_object, "another", ins, 1) is None
        assert traces.get(of_object, "one", ins, 1) is not None
        assert traces.get(of_object, "one", (known(2.0),), 1) is None
        assert traces.get(of_object, "one", (known(True),), 1) is None


def test_nothing_is_kept_outside() -> None:
    traces, ins = KeptTraces(), (known(2),)
    traces.put(of_object, "one", ins, 1, trace(of_object, ins, 1))
    assert traces.get(of_object, "one", ins, 1) is None


def test_functions_are_the_same_only_with_equal_code_at_equal_places() -> None:
    texts = ["def f(x): return x + 1", "def f(x): return x + 1", "def f(x): return  x + 1", "def f(x): return x + 1.0"]
    spaces: list[dict[str, Any]] = [{} for _ in texts]
    for text, space in zip(texts, spaces, strict=True):
        exec(compile(text, "<a>", "exec"), space)
    one, same, elsewhere, other = (space["f"] for space in spaces)
    with keeping_primitives():
        again = type(one)(same.__code__, one.__globals__, "f")
        assert kept(one, ()) is one
        assert kept(again, ()) is one
        assert kept(same, ()) is same  # other globals
        assert kept(type(one)(elsewhere.__code__, one.__globals__, "f"), ()) is not one
        assert kept(type(one)(other.__code__, one.__globals__, "f"), ()) is not one
    assert kept(again, ()) is again
