"""What XLA makes of the machine of lists: neither lists nor the pool are copied in the loop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pcbatch.ir.tasks import TaskProgram
from pcbatch.runtime.costs import xla_options
from pcbatch.runtime.tasks import TaskExecutable, TaskOptions
from tests.runtime import task_programs as programs
from tests.runtime.test_hlo import LANES, copies

pytestmark = [pytest.mark.long]

NUMBERS = np.zeros(LANES, np.int32)
PROGRAMS: dict[str, tuple[Callable[[], TaskProgram], tuple[str, ...]]] = {
    "frames": (programs.fib_frames, ("n",)),
    "sums": (programs.fib_sums, ("n",)),
    "loop": (programs.loop_into_frame, ("n", "width")),
    "rows": (programs.rows_of_frame, ("n", "width")),
    "queens": (programs.queens_sums, ("free", "columns", "left", "right", "board")),
}


@pytest.mark.share(4, 0, 3, 6)
@pytest.mark.promotion("standard")
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("in_place", [True, False])
def test_neither_lists_nor_frames_are_copied_in_the_loop(
    name: str, in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where XLA's option for it may not be given."""
    if not in_place:
        monkeypatch.setenv("XLA_FLAGS", xla_options.OLDER_EMITTERS)
        assert not xla_options.keeps_in_place()
    make, params = PROGRAMS[name]
    executable = TaskExecutable(make(), TaskOptions(width=16, frames=1009, room=1009))
    text = executable.lower(dict.fromkeys(params, NUMBERS), LANES).compile().as_text()
    sizes = executable.chosen(LANES)
    entry = executable.plan(single=False).entry
    assert f"s32[{sizes.length(executable.plan(single=False), entry)}]" in text
    assert copies(text, least=8) == []


@pytest.mark.promotion("standard")
def test_constants_of_examples_are_read_in_part() -> None:
    executable = TaskExecutable(programs.treelstm(), TaskOptions(width=16, frames=1009))
    trees = dict.fromkeys(("left", "right", "word"), np.zeros((LANES, programs.NODES), np.int32))
    args = {"w": np.zeros((5, 5), np.float32), "e": np.zeros((7, 5), np.float32), **trees}
    text = executable.lower(args, LANES).compile().as_text()
    assert f"s32[{LANES},{programs.NODES}]" in text
    assert f"s32[16,{programs.NODES}]" not in text  # the rows of a visit
    assert copies(text, least=8) == []
