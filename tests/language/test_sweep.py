"""No function of NumPy or of the standard library is silently wrong on values of a lane, or fails without a code."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import jax
import pytest

from tests.language.sweep.calls import GROUPS
from tests.language.sweep.compare import Verdict, in_plain_python, verdicts

pytestmark = pytest.mark.promotion("standard")

PARTS = {"numpy": 48, "ufuncs": 8, "math": 2, "numbers": 2, "methods": 6, "builtins": 6, "library": 8}
CHUNK = 250  # statements of one function


@functools.cache
def texts(group: str) -> list[str]:
    return list(dict.fromkeys(GROUPS[group]()))


@pytest.fixture(autouse=True)
def as_in_a_plain_session() -> Iterator[None]:
    filtering = jax.config.jax_traceback_filtering  # type: ignore[attr-defined]
    jax.config.update("jax_traceback_filtering", "off")  # each error of JAX is ten times as dear with it
    with jax.numpy_rank_promotion("allow"):
        yield
    jax.config.update("jax_traceback_filtering", filtering)


@pytest.mark.share(20)
@pytest.mark.parametrize(("group", "part"), [(group, k) for group, count in PARTS.items() for k in range(count)])
def test_a_lane_gives_what_python_gives_or_is_refused(group: str, part: int) -> None:
    plains = list(in_plain_python(texts(group)[part :: PARTS[group]]))
    found: list[Verdict] = []
    for start in range(0, len(plains), CHUNK):
        found += verdicts(plains[start : start + CHUNK])
    assert len(found) == len(plains) > 10
    assert [verdict for verdict in found if verdict.wrong] == []


def test_the_sweep_tells_wrong_from_right() -> None:
    wrong = {
        "np.array_equal(xs, xs)": "PCB306",
        "np.bmat(m)": "PCB306",
        "np.argsort(xs)": "PCB306",
        "xs.sort()": "same",
        "operator.iadd(xs, 2)": "same",
        "math.sqrt(n)": "same",
        "x.hex()": "PCB306",
        "np.sum(xs)": "same",
        "xs.max()": "same",
        "[abs, n][0](-2)": "same",
        "n if c else x": "several operations",
    }
    found = {verdict.text: verdict for verdict in verdicts(list(in_plain_python(list(wrong))))}
    assert {text: verdict.wrong or verdict.code for text, verdict in found.items()} == wrong
