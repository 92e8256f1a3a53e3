"""Strict settings for the whole suite: what users may turn on must not break pcbatch.

Mixed ranks and mixed dtypes are refused (the machine must be explicit about its own), warnings are errors
(`setup.cfg`), there are two devices, and Hypothesis is reproducible. Most of the time goes into compiling, so LLVM's
optimiser is off (the passes of XLA itself are not), and XLA's thread pools are, because pytest-xdist already uses every
core. Older emitters compile most programs (`emitters.py`). Flags in the environment win:
`XLA_FLAGS="--xla_backend_optimization_level=3 --xla_cpu_use_fusion_emitters=true"` is what users have.
"""

from __future__ import annotations

import gc
import json
import os
import re
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests import emitters, shares

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("PCBATCH_ON_FAILURE", "ignore")  # JAX keeps no program that can warn in its persistent cache
os.environ["XLA_FLAGS"] = " ".join(
    emitters.choose(
        [
            *("--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true"),
            *("--xla_cpu_multi_thread_eigen=false", "--xla_cpu_parallel_codegen_split_count=1"),
            *os.environ.get("XLA_FLAGS", "").split(),
        ]
    )
)

import hypothesis
import jax
import pytest

from pcbatch.api import programs
from pcbatch.compiler.program import Program
from pcbatch.data.capacity import NO_ROOM
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import PcbatchError
from tests.shares import in_share

# Tests press Ctrl-C, which what a shell has started in the background ignores.
signal.signal(signal.SIGINT, signal.default_int_handler)

jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_rank_promotion", "raise")

hypothesis.settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("explore", hypothesis.settings.get_profile("ci"), derandomize=False)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this suite."""
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/errors/*.err")
    parser.addoption("--full", action="store_true", help="every case of every test: an hour or more")
    parser.addoption("--quick", action="store_true", help="of each test so many cases as run in 0.6 seconds")
    parser.addoption("--record-seconds", action="store_true", help="rewrite tests/seconds.json")


def pytest_configure(config: pytest.Config) -> None:
    """Tell `shares` what kind of run this is."""
    shares.full = _takes_all(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only longer runs take, unless tests are asked for by name."""
    if _takes_all(config):
        return
    quick = config.getoption("quick")
    counted, usual = Counter[str](), Counter[str]()
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        suite = item.nodeid.partition("[")[0]
        takes = _is_usual(item, counted[suite])
        counted[suite] += 1
        usual[suite] += takes
        (kept if takes and (not quick or shares.is_quick(suite, usual[suite] - 1)) else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


_took = defaultdict[str, float](float)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the seconds of a test's cases."""
    _took[report.nodeid.partition("[")[0]] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the seconds of tests that took more than a quick run gives them, if asked for."""
    if session.config.getoption("record_seconds") and not hasattr(session.config, "workerinput"):
        found = {suite: round(took, 1) for suite, took in sorted(_took.items()) if took > shares.BUDGET}
        shares.SECONDS.write_text(json.dumps(found, indent=0) + "\n", "utf-8")


def pytest_collection_finish() -> None:
    """What collecting made stays: the garbage collector need not look at it again, nor come so often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 10, 30)


def _takes_all(config: pytest.Config) -> bool:
    named = bool(config.getoption("keyword")) or any("::" in argument for argument in config.args)
    return named or bool(config.getoption("full"))


def _is_usual(item: pytest.Item, number: int) -> bool:
    """Is this case, of this number among those of its test, in a usual run?"""
    if item.get_closest_marker("full_only"):
        return False
    share = item.get_closest_marker("share")
    return share is None or in_share(number, *share.args)


@pytest.fixture(autouse=True)
def dtype_promotion(request: pytest.FixtureRequest) -> Iterator[None]:
    """Strict dtype promotion, unless the test is marked `promotion("standard")`."""
    marker = request.node.get_closest_marker("promotion")
    with jax.numpy_dtype_promotion(marker.args[0] if marker else "strict"):
        yield


@pytest.fixture(autouse=True)
def compiled_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The emitters and options of XLA that users have, in tests of the machine."""
    if emitters.are_those_of_users(request.node):
        emitters.use_those_of_users(monkeypatch)


@pytest.fixture(autouse=True)
def lanes_together(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the lanes of plain calls run together in tests marked `together`: those of trips, visits and programs."""
    if request.node.get_closest_marker("together"):
        monkeypatch.setattr(programs, "_with_choice", lambda call, *_: replace(call, alone=False))


@pytest.fixture(autouse=True)
def runs_without_examples(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs begin with the room that they have where no example tells more, in tests marked `unsized`."""
    if request.node.get_closest_marker("unsized"):
        monkeypatch.setattr(programs, "room_of", lambda *_: NO_ROOM)


@pytest.fixture(autouse=True)
def nothing_refused(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test pass because XLA has refused a native function, but those marked `refused`."""
    if not request.node.get_closest_marker("refused"):
        monkeypatch.setattr(Program, "is_refused", lambda self, call: False)


NAMES_INSIDE = re.compile(
    r"\b(Lane(List|Text|Dict|Set|Tuple|Deque|Queue|Stack|Range|Sequence)|MemberValue|RecordList|RefType|DictView|OrderedKeys|"
    r"MadeClass|DynamicJaxprTracer|JitTracer|BatchTracer)\b|type '?(Ref|Draft)\b"
)


@pytest.fixture(autouse=True, scope="session")
def _users_words() -> Iterator[None]:
    """Let no message name a class that users do not know, of this package or of JAX."""
    plain = PcbatchError.__init__

    def checked(self: PcbatchError, diagnostics: Sequence[Diagnostic] | Diagnostic) -> None:
        plain(self, diagnostics)
        for found in self.diagnostics:
            for text in (found.title, *found.notes, *found.helps):
                assert NAMES_INSIDE.search(text) is None, text

    PcbatchError.__init__ = checked  # type: ignore[method-assign]
    yield
    PcbatchError.__init__ = plain  # type: ignore[method-assign]
