"""Lane after lane in one native function: results, limits, growth and runs in bits are those of every machine."""

from __future__ import annotations

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
from pcbatch.runtime.scalar import ScalarMachine, obstacles
from pcbatch.runtime.vm.status import Status
from tests.oracles.plans import planned
from tests.programs import PROGRAMS, Program
from tests.programs.classics import fib
from tests.programs.compare import assert_outcomes

NUMBERS = np.array([3, 10, 0, 7, 12, 1], np.int32)
RESULTS = [2, 55, 0, 13, 144, 1]


def scalar(fn: Any, **options: Any) -> Any:
    return pcbatch.batch(fn, **planned(emitter="scalar", **options))


def machine(f: Any, *args: Any) -> Any:
    return f.lower(*args).program.executable.machine


def classical(n):
    return n if n < 2 else classical(n - 1) + classical(n - 2)


def endless(n):
    while n > 0:
        n = n if n == 7 else n - 1
    return n


def with_a_list(n):
    squares = []
    for k in range(n):
        squares.append(k * k)
        if k % 3 == 2:
            squares.insert(0, squares.pop())
    return squares


def assert_alone(program: Program) -> None:
    """Compare a program whose lanes run one after the other with plain Python."""
    with program.mode():
        run = program.batched(emitter="scalar", fork="never").run(*program.args(5))
        assert_outcomes(run, program.expected(5), rtol=program.rtol)


@pytest.mark.share(12, 0)
@pytest.mark.promotion("standard")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_programs(program: Program) -> None:
    assert_alone(program)


class TestBothKinds:
    """Tests of runs, whether some blocks are outside or none."""

    def test_limits_of_steps_are_those_of_other_emitters(self) -> None:
        for steps in range(1, 12):
            runs = [
                pcbatch.batch(endless, plan=pcbatch.Plan(emitter=e), max_steps=steps).run(NUMBERS)
                for e in ("scalar", "guard")
            ]
            assert runs[0].status.tolist() == runs[1].status.tolist()

    def test_lists_grow(self) -> None:
        lengths = np.array([0, 5, 90], np.int32)
        assert scalar(with_a_list)(lengths).tolist() == [with_a_list(int(n)) for n in lengths]

    def test_lanes_without_end_beside_others(self) -> None:
        run = scalar(endless).run(np.array([3, 9, 1], np.int32), timeout=0.5)
        assert run.status.tolist() == [Status.OK, Status.RUNNING, Status.OK]


class TestRuns:
    def test_stacks_grow(self) -> None:
        assert isinstance(machine(scalar(fib), NUMBERS), ScalarMachine)
        depths = np.array([5, 700, 40], np.int32)
        assert scalar(deep)(depths).tolist() == [5, 700, 40]

    def test_a_lane_that_is_too_deep_or_too_long_ends_alone(self) -> None:
        run = scalar(deep, max_depth=50).run(np.array([5, 700, 40], np.int32))
        assert run.status.tolist() == [Status.OK, Status.STACK_FULL, Status.OK]
        run = scalar(endless, max_steps=100).run(np.array([5, 9, 2], np.int32))
        assert run.status.tolist() == [Status.OK, Status.STEP_LIMIT, Status.OK]
        assert run.value.tolist()[::2] == [0, 0]

    def test_map_and_runs_in_bits(self, tmp_path: Path) -> None:
        f = scalar(classical)
        assert f.map(np.tile(NUMBERS, 5), lanes=4).value.tolist() == RESULTS * 5
        begun = f.start(NUMBERS)
        begun = begun.advance(max_trips=20)
        assert not begun.done and begun.progress().finished == 3
        begun.save(tmp_path / "run")
        assert f.load(tmp_path / "run").advance().result().value.tolist() == RESULTS
        assert begun.advance().result().value.tolist() == RESULTS

    def test_empty_arrays(self) -> None:
        def first(xs, n):
            return n + xs.shape[0] + xs.sum(dtype=jnp.int32)

        assert scalar(first)(np.zeros((3, 0), np.int32), np.arange(3, dtype=np.int32)).tolist() == [0, 1, 2]

    def test_arms_stay_arms(self) -> None:
        """Lists of two arms are not computed both, to be selected from."""

        def either(n):
            xs = []
            for k in range(n):
                if k % 2:
                    xs.append(k * k)
                else:
                    xs.append(-k)
            return xs

        f = scalar(either)
        assert f(NUMBERS).tolist() == [either(int(n)) for n in NUMBERS]
        lowered = f.lower(NUMBERS).as_text("opt")
        assert not [line for line in lowered.splitlines() if "select" in line and "xs._0" in line]

    def test_stacks_are_those_of_one_lane_and_are_not_copied(self) -> None:
        """A block that takes lists from a frame and stores others there does so in place."""

        def sums(xs, n):
            if n <= 0:
                return [x + 1 for x in xs]
            left = sums(xs, n - 1)
            right = sums(left, n - 2)
            return [x + y for x, y in zip(left, right, strict=False)]

        f, xs = scalar(sums, max_depth=30), pcbatch.ragged([[1, 2, 3], [4], [5, 6], [], [1, 1], [2]])
        depths = [3, 2, 1, 0, 4, 2]
        assert f(xs, np.array(depths)).tolist() == [sums(x, n) for x, n in zip(xs.tolist(), depths, strict=True)]
        text = f.lower(xs, np.array(depths)).compile().as_text()
        stacks = r"u32\[32,\d+\]"
        assert len(re.findall(rf"= {stacks}\S* copy\(", text)) <= 1  # before the first lane
        assert re.search(stacks, text) and not re.search(r"u32\[32,6,", text)

    def test_results_are_written_once(self) -> None:
        """The array of a result of all lanes is that of the register, in which lanes that fail have none."""

        def powers(n):
            found = [n**k for k in range(3)]
            return found if found[1] > 0 else [found[n + 5]]

        f = scalar(powers)
        run = f.run(NUMBERS)
        assert run.status.tolist() == [Status.ERROR if n == 0 else Status.OK for n in NUMBERS]
        assert [xs for n, xs in zip(NUMBERS, run.value.tolist(), strict=True) if n] == [
            powers(int(n)) for n in NUMBERS if n
        ]
        text = f.lower(NUMBERS).compile().as_text()
        entry = text[text.index("\nENTRY") :]
        assert len(re.findall(r"= s32\[6,\d\d\]\S* (?:fusion|broadcast|copy)\(", entry)) == 1

    def test_a_full_stack_tells_the_call(self) -> None:
        """The return address of a lane is that of its own last call, not of the lanes behind it."""
        with pytest.raises(pcbatch.BatchRuntimeError, match=r"return 0 if n == 0 else 1 \+ deep\(n - 1\)"):
            scalar(deep, max_depth=5)(np.array([3, 9, 2], np.int32))

    def test_statistics_count_visits_of_lanes(self) -> None:
        blocks = scalar(classical, stats=True).run(NUMBERS).stats.blocks
        assert all(int(block.active) == int(block.visits) for block in blocks)
        wide = (
            pcbatch.batch(classical, plan=pcbatch.Plan(emitter="guard", fork="never", unroll=1), stats=True)
            .run(NUMBERS)
            .stats.blocks
        )
        assert max(int(b.active) for b in blocks) == max(int(b.active) for b in wide)


def deep(n):
    return 0 if n == 0 else 1 + deep(n - 1)


class TestComposition:
    def test_jit_vmap_and_gradients(self) -> None:
        f = scalar(classical, max_depth=20)
        assert jax.jit(f)(NUMBERS).tolist() == RESULTS
        assert jax.jit(jax.vmap(f))(np.stack([NUMBERS, NUMBERS[::-1]])).tolist() == [RESULTS, RESULTS[::-1]]

        def power(x, n):
            return jnp.float32(1.0) if n == 0 else x * power(x, n - 1)

        g = scalar(power, max_depth=20)
        x, n = np.full(3, 2.0, np.float32), np.array([1, 3, 5], np.int32)
        assert jax.grad(lambda x: g(x, n).sum())(x).tolist() == [1.0, 12.0, 80.0]
        assert jax.jit(lambda x: jax.jvp(lambda x: g(x, n), (x,), (x,)))(x)[1].tolist() == [2.0, 24.0, 160.0]

    def test_outside_of_jit(self) -> None:
        """Vectors, whose lanes come last where they run together, and stacks that grow."""

        def halved(x, n):
            return x.sum() if n == 0 else halved(x * 0.5, n - 1) + x[0]

        f, x, n = scalar(halved), np.ones((3, 8), np.float32), np.array([0, 2, 1], np.int32)
        assert jax.vmap(f)(np.stack([x, x]), np.stack([n, n])).tolist() == [[8.0, 3.5, 5.0]] * 2
        gradient = jax.grad(lambda x: f(x, n).sum())(x)
        assert gradient[:, 0].tolist() == [1.0, 1.75, 1.5] and gradient[:, 1].tolist() == [1.0, 0.25, 0.5]

    def test_another_platform_gets_another_emitter(self) -> None:
        f = scalar(classical, max_depth=20)
        lowered = jax.jit(f).trace(NUMBERS).lower(lowering_platforms=("cuda",))
        assert "xla_cpu_small_call" not in lowered.as_text()
        assert "xla_cpu_small_call" in jax.jit(f).lower(NUMBERS).as_text()

    def test_64_bits(self) -> None:
        with jax.enable_x64(True):
            result = scalar(classical)(np.array([50, 3], np.int64) // 5)
            assert result.dtype == np.int64 and result.tolist() == [55, 0]


class TestWhatIsNot:
    def test_a_program_that_prints_or_calls_a_library_has_the_machine_of_lanes(self) -> None:
        def solves(a):
            return jnp.linalg.cholesky(a)[0, 0]

        f = scalar(solves)
        a = np.stack([np.eye(3, dtype=np.float32)] * 2)
        assert not isinstance(machine(f, a), ScalarMachine)
        assert [str(o).partition(" (line")[0] for o in obstacles(machine(f, a).layout)] == [
            "`cholesky` is a call of a library or of the host"
        ]
        assert f(a).tolist() == [1.0, 1.0]

    @pytest.mark.parametrize(
        ("fn", "reason"),
        [
            (lambda x: jax.lax.approx_max_k(x, 3)[0].sum(), "`approx_top_k` is a call of a library or of the host"),
            (lambda x: jax.lax.linalg.tridiagonal_solve(x, x + 3, x, x[:, None]).sum(), "`tridiagonal_solve`"),
        ],
    )
    def test_operations_without_a_form_for_one_lane(self, fn: Any, reason: str) -> None:
        f, x = scalar(fn), np.arange(1, 13, dtype=np.float32).reshape(2, 6)
        assert any(str(each).startswith(reason) for each in obstacles(machine(f, x).layout))
        np.testing.assert_allclose(f(x), [fn(jnp.asarray(row)) for row in x], rtol=1e-5)
        assert "and not `scalar`" in str(f.explain_schedule(x))

    def test_lists_of_keys(self) -> None:
        def last(key, n):
            keys = [key]
            for k in range(n):
                keys.append(jax.random.fold_in(key, k))
            return jax.random.uniform(keys[-1])

        keys, n = jax.random.split(jax.random.key(0), 3), np.array([0, 2, 5], np.int32)
        np.testing.assert_allclose(scalar(last)(keys, n), [last(k, int(m)) for k, m in zip(keys, n, strict=True)])


KERNELS = """
import sys
import numpy as np
import pcbatch
from tests.runtime.scalar.test_machine import classical
plan = pcbatch.Plan(emitter="scalar")
print(pcbatch.batch(classical, plan=plan, max_depth=20)(np.arange(8, dtype=np.int32)).tolist())
"""


def test_the_loop_of_lanes_is_one_native_function(tmp_path: Path) -> None:
    """A release of XLA that does not know the attribute makes a kernel of each operation in the loop."""
    code = subprocess.run(
        [sys.executable, "-c", KERNELS],
        env={**environment(), "XLA_FLAGS": f"--xla_dump_to={tmp_path} --xla_dump_hlo_as_text"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert code.stdout.strip() == "[0, 1, 1, 2, 3, 5, 8, 13]"
    # A module of LLVM for each kernel; newer releases write object files instead.
    kernels = {path.name for path in tmp_path.glob("*run_whole*ir-no-opt.ll")}
    kernels = kernels or {path.name for path in tmp_path.glob("*run_whole*obj-file*.o")}
    assert 1 <= len(kernels) <= 12, sorted(kernels)


def environment() -> dict[str, str]:
    import os

    root = str(Path(__file__).parents[3])
    return {**os.environ, "PYTHONPATH": root, "JAX_PLATFORMS": "cpu"}
