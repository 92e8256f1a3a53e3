"""Processes that are killed with SIGKILL, and interrupted with SIGINT, go on bit for bit (`tools/kill_runs.py`)."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools import kill_runs

pytestmark = pytest.mark.long

CTRL_C = """
import signal
import sys
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def endless(n):
    steps = 0
    while n != 0:
        n, steps = n - 2, steps + 1
        if n < 0:
            n += 2
    return steps


signal.signal(signal.SIGINT, signal.default_int_handler)  # what shells start in the background ignores Ctrl-C
looks = 0


def look(done, total):
    global looks
    looks += 1
    if looks == 4:
        print("ready", flush=True)


try:
    endless.run(jnp.array([4, 3, 2]), progress=look)
except pcbatch.Interrupted as stopped:
    m = stopped.machine
    m.save(sys.argv[1])
    print(m.progress().finished, endless.load(sys.argv[1]).advance(10).progress().trips - m.progress().trips)
"""


@pytest.mark.share(3)
@pytest.mark.parametrize("kind", kill_runs.KINDS)
def test_going_on_after_sigkill(kind: str) -> None:
    right, killed = kill_runs.times(kind, 1, seed=7, kills=1)
    assert right == 1 and killed <= 1


def test_ctrl_c_leaves_a_machine(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(CTRL_C, "utf-8")
    command = [sys.executable, str(program), str(tmp_path / "run.npz")]
    with subprocess.Popen(command, cwd=kill_runs.ROOT, env=kill_runs.environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read().split() == [b"2", b"10"]
    assert process.returncode == 0
