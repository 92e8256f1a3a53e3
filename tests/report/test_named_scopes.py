"""Every block is a scope: programs and profiles of XLA show function, block, file and line."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.ir.analysis.def_use import AnyOp
from pcbatch.ir.ops import Fail
from pcbatch.runtime.vm.named_scopes import scope
from tests.oracles.plans import replanned

pytestmark = pytest.mark.share(3)

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).name


@pcbatch.batch
def fib(n):
    if n <= 1:
        return 1
    return fib(n - 2) + fib(n - 1)


@pcbatch.inline
def clipped(x, top):
    return jnp.where(x > top, jnp.sin(x), x)


def climb(x):
    while x < 5.0:
        x = clipped(x * 1.5, 9.0)
        x = jnp.cosh(x)
    return x


FIRST = fib.fn.__code__.co_firstlineno
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"emitter": "port"},
    {"schedule": "earliest"},
    {"schedule": "earliest", "emitter": "port"},
    {"modes": pcbatch.Few(2)},
    {"modes": pcbatch.Strips(2)},
)


def names(text: str) -> set[str]:
    """Names of operations in a text of XLA."""
    return set(re.findall(r'op_name="([^"]*)"', text))


def awaited(lowered: Any) -> list[Any]:
    """The blocks in which lanes do not only fail."""
    return [block for block in lowered.stages.opt.blocks if not isinstance(block.terminator, Fail)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_block_is_in_the_compiled_program(options: dict[str, Any]) -> None:
    lowered = replanned(fib, **options).lower(np.arange(8, dtype=np.int32))
    found = names(lowered.compile().as_text())
    for block in awaited(lowered):
        assert any(scope(block) in name for name in found), block.label
        assert re.fullmatch(rf"fib/{block.label} {HERE}:[\d,]+", scope(block))


def test_the_last_block_of_fib_is_its_last_line() -> None:
    last = awaited(fib.lower(np.arange(8, dtype=np.int32)))[-1]
    assert scope(last) == f"fib/bb3 {HERE}:{FIRST + 4}"


def test_inside_a_program_of_the_users() -> None:
    text = jax.jit(lambda n: fib(n) + 1).lower(np.arange(8, dtype=np.int32)).compile().as_text()
    assert any(f"fib/bb3 {HERE}:{FIRST + 4}" in name for name in names(text))


def test_scopes_of_the_user_stay() -> None:
    def scoped(x):
        while x < 5.0:
            with_name = jax.named_scope("mine")(jnp.cosh)
            x = with_name(x) + 1.0
        return x

    found = names(pcbatch.batch(scoped).lower(jnp.ones(4)).compile().as_text())
    assert any("scoped/" in name and "mine" in name for name in found)


def test_helpers_are_shown_by_their_lines() -> None:
    lowered = pcbatch.batch(climb).lower(jnp.ones(4))
    lines = {
        int(line)
        for block in lowered.stages.opt.blocks
        for line in scope(block).rpartition(":")[2].split(",")
        if line.isdigit()
    }
    assert {climb.__code__.co_firstlineno + 2, climb.__code__.co_firstlineno + 3} <= lines


def test_a_block_of_many_files_is_cut_short() -> None:
    from pcbatch.diagnostics.diagnostic import Loc
    from pcbatch.ir.ops import Move, Return
    from pcbatch.ir.stack import StackBlock

    ops: tuple[AnyOp, ...] = tuple(
        Move("a", "b", Loc(f"/some/where/{file}.py", line, 0, line, 1)) for file in "xyz" for line in (9, 3, 4, 8, 7)
    )
    block = StackBlock("bb7", ops, Return(), "outer.<locals>.f")  # type: ignore[arg-type]
    assert scope(block) == "f/bb7 x.py:3,4,7,8 y.py:3,4,7,8"
    windows = StackBlock("bb0", (Move("a", "b", Loc("C:\\mine\\x.py", 3, 0, 3, 1)),), Return(), "f")
    assert scope(windows) == "f/bb0 x.py:3"
    assert scope(StackBlock("bb0", (), Return(), "f")) == "f/bb0"


PROGRAM = """
import hashlib, sys
import jax, numpy as np, pcbatch

@pcbatch.batch
def fib(n):
    if n <= 1:
        return 1
    return fib(n - 2) + fib(n - 1)

text = fib.lower(np.arange(4, dtype=np.int32)).compile().as_text()
assert "fib/bb3 program.py:9" in text
print(hashlib.sha256("\\n".join(sorted(set(__import__("re").findall('op_name="([^"]*)"', text)))).encode()).hexdigest())
"""


@pytest.mark.full_only
def test_names_are_the_same_wherever_the_file_is(tmp_path: Path) -> None:
    seen = set()
    for folder in ("a", "b"):
        file = tmp_path / folder / "program.py"
        file.parent.mkdir()
        file.write_text(PROGRAM)
        run = subprocess.run(
            [sys.executable, str(file)],
            capture_output=True,
            text=True,
            check=False,
            env={"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "PYTHONHASHSEED": str(len(seen))},
        )
        assert run.returncode == 0, run.stderr
        seen.add(run.stdout)
    assert len(seen) == 1


def test_scopes_do_not_change_the_program() -> None:
    """The text of which the key of the persistent cache is made has no names."""
    text = fib.lower(np.arange(8, dtype=np.int32)).as_text()
    assert HERE not in text and "fib/bb" not in text
    assert hashlib.sha256(text.encode()).digest() == hashlib.sha256(fib.lower(np.arange(8)).as_text().encode()).digest()
