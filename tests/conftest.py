"""Strict settings for the whole suite: what users may turn on must not break pcbatch.

Mixed ranks and mixed dtypes are refused (the machine must be explicit about its own), warnings are errors
(`setup.cfg`), there are two devices, and Hypothesis is reproducible. Most of the time goes into compiling, so LLVM's
optimiser is off (the passes of XLA itself are not), and XLA's thread pools are, because pytest-xdist already uses every
core. Flags in the environment win: `XLA_FLAGS=--xla_backend_optimization_level=3` is what users have.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = " ".join(
    ["--xla_backend_optimization_level=0", "--xla_cpu_multi_thread_eigen=false", os.environ.get("XLA_FLAGS", "")]
)

import hypothesis
import jax
import pytest

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
    """`--update-golden` writes the expected renderings of errors anew."""
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/errors/*.err")


# Long suites that run what shorter ones have run already, on other programs, lane counts or machines.
REPEATED = (
    "tests/examples/",
    "tests/test_fuzz.py",
    "tests/test_map.py::TestEveryProgram",
    "tests/test_independence.py",
    "tests/test_codes.py::test_the_good_program_runs",
    "tests/test_fail.py::test_the_others_are_not_disturbed",
    "tests/test_language_doc.py",
    "tests/test_print.py::test_lanes_print_what_the_plain_function_prints",
    "tests/test_types.py::test_what_runs_has",
    "tests/test_types.py::test_straight_programs",
    "tests/test_types.py::test_a_join_is_what_where_gives",
    "tests/ir/test_export.py::test_dot_strings_are_closed",
    "tests/ir/test_text.py::test_parsing_what_was_printed",
    "tests/test_differential.py::test_default_options_on_every_lane_count",
    "tests/test_differential.py::test_schedules_and_emitters",
    "tests/test_differential.py::test_all_schedules_and_emitters",
    "tests/test_differential.py::test_local_strategy",
    "tests/test_differential.py::test_under_jit",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long suites can be left out by the name of a marker."""
    for item in items:
        if item.nodeid.startswith(REPEATED):
            item.add_marker("repeated")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Lines are not counted in the long suites where counting is dear: by the tracer of coverage on Python 3.11.

    (Not by pytest-cov's `no_cover`: stopping its tracer lets that of the process go on, which costs as much.)
    """
    tracer = sys.gettrace()
    if not type(tracer).__module__.startswith("coverage") or not item.nodeid.startswith(REPEATED):
        return (yield)
    sys.settrace(None)
    threading.settrace(None)  # type: ignore[arg-type]
    try:
        return (yield)
    finally:
        sys.settrace(tracer)
        threading.settrace(tracer)


@pytest.fixture(autouse=True)
def dtype_promotion(request: pytest.FixtureRequest) -> Iterator[None]:
    """Strict dtype promotion, unless the test is marked `promotion("standard")`."""
    marker = request.node.get_closest_marker("promotion")
    with jax.numpy_dtype_promotion(marker.args[0] if marker else "strict"):
        yield
