"""Programs over Python's own data that random programs have found: every stage means what plain Python means."""

from __future__ import annotations

import pytest

from tests.oracles.python_programs import check_stages, prepare
from tests.programs.container_programs import PythonProgram

pytestmark = [pytest.mark.promotion("standard")]

INTEGERS = (("a", "int"), ("b", "int"))

ELEMENT_OF_A_LIST_IN_WHICH_NOTHING_WAS_STORED = """\
def f0(a, b):
    xs = []
    ys = xs[b:]
    if a:
        ys[6:a] = xs[:2]
    if ys:
        b = ys.pop()
    return b, len(ys)
"""


@pytest.mark.parametrize("text", [ELEMENT_OF_A_LIST_IN_WHICH_NOTHING_WAS_STORED], ids=["nothing stored"])
def test_all_stages_mean_what_plain_python_means(text: str) -> None:
    check_stages(prepare(PythonProgram(text, INTEGERS), 0, 5))
