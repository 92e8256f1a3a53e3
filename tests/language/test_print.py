"""`print` and `jax.debug.print`: every lane prints what the plain function prints, in its order, and nothing else."""

from __future__ import annotations

import contextlib
import io
import re
from collections import defaultdict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.ir.ops import Print
from tests.oracles.plans import planned
from tests.programs.compare import lane

pytestmark = [pytest.mark.share(3), pytest.mark.promotion("standard")]

OPTIONS: tuple[dict[str, Any], ...] = (
    {"strategy": "local"},
    *({"emitter": e, "schedule": s} for e in ("guard", "port") for s in ("earliest", "largest", "sweep")),
)
every_option = pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options.values()))


def i32(*values: int) -> np.ndarray:
    """A vector of int32."""
    return np.array(values, np.int32)


def countdown(n, x):
    print("from", n)
    while n > 0:
        if n % 2 == 0:
            print(f"even {n:03d}, {x = :.2f}")
        else:
            jax.debug.print("odd {} {x:>6.1f} {{}}", n, x=x)
        x = x * 0.5
        n -= 1
    print()
    print("done", n, x, sep=" | ", end=".\n")
    return n


@pcbatch.batch
def walk(n, mode):
    print("enter", n)
    if n < 2:
        return n
    left = walk(n - 2, mode)
    print("between", n, left)
    right = walk(n - 1, mode)
    print(f"leave {n}: {left + right}, {mode}")
    return left + right


def recursive(n):
    return walk(n, "deep")


@pcbatch.batch
def shout(x):
    print("callee", x)
    while x > 1:
        print("callee loops", x)
        x = x * 0.5
    return x


def calls(n, x):
    print("before", n)
    x = shout(x + n)
    print("after", x)
    if n > 1:
        x = shout(x * 4)
        print("twice")
    return x


def structures(n, x):
    pair = (n, {"a": x[0], "b": x})
    print(pair, pair[0], None, "text", 2.5, True)
    print(f"{pair[1]['a']!r:>9}|{x!s}|{'constant'!r}|{n:{4}d}")
    print("{}/{:.1f}".format(n, x[0]))  # noqa: UP032
    dead = n * 2
    print("unused", dead)
    return x


X = np.array([[1.5, -2, 3], [0.25, 1, 1], [9, 9, 9], [0, 0, 0]], np.float32)
PROGRAMS: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (countdown, (i32(3, 0, 5, 2), X[:, 0])),
    (recursive, (i32(4, 1, 3, 5),)),
    (calls, (i32(1, 3, 0, 2), X[:, 0])),
)
every_program = pytest.mark.parametrize(("fn", "args"), PROGRAMS, ids=[fn.__name__ for fn, _ in PROGRAMS])


def plain_lines(fn: Any, args: tuple[Any, ...], lanes: int) -> dict[int, list[str]]:
    """What plain Python prints for each example."""
    out: dict[int, list[str]] = {}
    for k in range(lanes):
        with contextlib.redirect_stdout(io.StringIO()) as written:
            pcbatch.batch(fn).plain(*jax.tree.map(jnp.asarray, lane(args, k)))
            jax.effects_barrier()
        out[k] = written.getvalue().splitlines()
    return out


def lines_of(text: str) -> dict[int, list[str]]:
    """The lines of each lane, without their prefix."""
    out: dict[int, list[str]] = defaultdict(list)
    for line in text.splitlines():
        found = re.fullmatch(r"\[lane (\d+)\] (.*)", line)
        assert found is not None, line
        out[int(found[1])].append(found[2])
    return dict(out)


@pytest.mark.share(6)
@pytest.mark.long
@every_option
@every_program
def test_lanes_print_what_the_plain_function_prints(fn: Any, args: Any, options: Any, capfd: Any) -> None:
    batched = pcbatch.batch(fn, **planned(**options))
    batched(*args)
    assert lines_of(capfd.readouterr().out) == plain_lines(fn, args, 4)
    batched(*args)
    assert lines_of(capfd.readouterr().out) == plain_lines(fn, args, 4), "the second call is compiled already"


@every_program
def test_inside_jit(fn: Any, args: Any, capfd: Any) -> None:
    jax.block_until_ready(jax.jit(pcbatch.batch(fn, max_depth=8))(*args))
    jax.effects_barrier()
    assert lines_of(capfd.readouterr().out) == plain_lines(fn, args, 4)


@pytest.mark.parametrize("options", [o for o in OPTIONS if o != {"strategy": "local"}][::4], ids=str)
def test_under_vmap_every_example_prints_once(options: dict[str, str], capfd: Any) -> None:
    args = (np.stack([i32(3, 0, 5), i32(1, 2, 0)]), np.stack([X[:3, 0], X[1:, 0]]))
    jax.vmap(pcbatch.batch(countdown, **planned(**options)))(*args)
    jax.effects_barrier()
    found = lines_of(capfd.readouterr().out)
    each = [plain_lines(countdown, lane(args, k), 3) for k in range(2)]
    assert {k: sorted(lines) for k, lines in found.items()} == {k: sorted(each[0][k] + each[1][k]) for k in range(3)}


@pytest.mark.full_only
def test_under_vmap_with_the_local_strategy(capfd: Any) -> None:
    args = (np.stack([i32(3, 0, 5), i32(1, 2, 0)]), np.stack([X[:3, 0], X[1:, 0]]))
    jax.vmap(pcbatch.batch(calls, strategy="local"))(*args)
    jax.effects_barrier()
    found = lines_of(capfd.readouterr().out)
    each = [plain_lines(calls, lane(args, k), 3) for k in range(2)]
    assert {k: sorted(lines) for k, lines in found.items()} == {k: sorted(each[0][k] + each[1][k]) for k in range(3)}


def test_lanes_on_two_devices(capfd: Any) -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("lanes",))
    spread = [jax.device_put(leaf, jax.NamedSharding(mesh, jax.P("lanes"))) for leaf in (i32(3, 0, 5, 2), X[:, 0])]
    pcbatch.batch(countdown)(*spread)
    assert lines_of(capfd.readouterr().out) == plain_lines(countdown, (i32(3, 0, 5, 2), X[:, 0]), 4)


@every_option
def test_structures_and_conversions(options: dict[str, str], capfd: Any) -> None:
    """Numbers show as numbers: plain JAX would write `Array(3, dtype=int32)` inside a tuple."""
    pcbatch.batch(structures, **planned(**options))(i32(3, 0), X[:2])
    assert lines_of(capfd.readouterr().out) == {
        0: [
            "(3, {'a': 1.5, 'b': [ 1.5 -2.   3. ]}) 3 None text 2.5 True",
            "      1.5|[ 1.5 -2.   3. ]|'constant'|   3",
            "3/1.5",
            "unused 6",
        ],
        1: [
            "(0, {'a': 0.25, 'b': [0.25 1.   1.  ]}) 0 None text 2.5 True",
            "     0.25|[0.25 1.   1.  ]|'constant'|   0",
            "0/0.2",
            "unused 0",
        ],
    }


def test_the_exact_text(capfd: Any) -> None:
    def f(n):
        if n > 2:
            print("x =", n)
        return n

    pcbatch.batch(f)(i32(1, 5, 2, 7))
    assert capfd.readouterr().out == "[lane 1] x = 5\n[lane 3] x = 7\n"


def test_a_shared_value(capfd: Any) -> None:
    def f(n, w):
        print("w", w * 2, n)
        return n + w

    for strategy in ("pc", "local"):
        pcbatch.batch(f, in_axes=(0, None), strategy=strategy)(i32(1, 2), i32(7)[0])
        assert capfd.readouterr().out == "[lane 0] w 14 1\n[lane 1] w 14 2\n"


def test_without_lanes_nothing_is_printed(capfd: Any) -> None:
    pcbatch.batch(countdown)(i32(), np.zeros(0, np.float32))
    assert capfd.readouterr().out == ""


def test_a_large_value(capfd: Any) -> None:
    def f(x):
        print(x)
        print(x.sum())
        return x

    pcbatch.batch(f)(np.ones((3, 200_000), np.float32))
    assert lines_of(capfd.readouterr().out) == {k: ["[1. 1. 1. ... 1. 1. 1.]", "200000.0"] for k in range(3)}


def test_a_random_key_prints_as_its_words(capfd: Any) -> None:
    def f(key):
        print(key)
        return jax.random.uniform(key)

    keys = jax.random.split(jax.random.key(0), 2)
    pcbatch.batch(f)(keys)
    words = [str(row) for row in np.asarray(jax.random.key_data(keys))]
    assert lines_of(capfd.readouterr().out) == {0: [words[0]], 1: [words[1]]}


def test_a_print_is_never_turned_into_a_selection() -> None:
    def f(n):
        m = n
        if n > 3:
            print("big")
            m = n + 1
        return m

    stages = pcbatch.batch(f).lower(i32(1, 5)).stages
    (block,) = [b for b in stages.opt.blocks if any(isinstance(op, Print) for op in b.ops)]
    assert len(stages.opt.blocks) == 2 or block.label != stages.opt.entry


def test_no_callback_where_nothing_is_printed() -> None:
    def f(n):
        return n + 1

    assert "callback" not in pcbatch.batch(f).lower(i32(1, 5)).as_text("stablehlo")


def test_with_failures_and_limits(capfd: Any) -> None:
    def f(n):
        print("start", n)
        assert n != 2
        while n > 0:
            n -= 1
        print("end")
        return n

    status = pcbatch.batch(f, max_steps=20).run(i32(1, 2, 100)).status
    assert np.asarray(status).tolist() == [0, int(pcbatch.Status.ASSERTION), int(pcbatch.Status.STEP_LIMIT)]
    assert lines_of(capfd.readouterr().out) == {0: ["start 1", "end"], 1: ["start 2"], 2: ["start 100"]}


def test_the_plain_function_prints_as_ever(capfd: Any) -> None:
    assert pcbatch.batch(countdown).plain(1, 2.0) == 0
    assert capfd.readouterr().out == "from 1\nodd 1    2.0 {}\n\ndone | 0 | 1.0.\n"


def test_lists_of_the_lane(capfd: Any) -> None:
    def f(n):
        xs, flags = [3], [n > 2]
        for k in range(n):
            xs.append(k * 2)
            flags.append(k == 1)
        print(xs, f"{xs}|{flags}")
        print((n, xs), {"z": xs, "a": n}, len(xs))
        if n == 3:
            raise ValueError(f"no {xs}")
        return n

    error = pcbatch.batch(f).run(i32(0, 2))
    assert np.asarray(error.status).tolist() == [0, 0]
    found = lines_of(capfd.readouterr().out)
    for n in (0, 2):
        f(n)
        assert found[n // 2] == capfd.readouterr().out.splitlines()
    with pytest.raises(pcbatch.BatchRuntimeError, match=r"no \[3, 0, 2, 4\]"):
        pcbatch.batch(f)(i32(0, 3))


class Named:
    def __init__(self, x):
        self.x = x

    def __str__(self):
        return f"N{self.x}"


def shows_what_may_be_none(a):
    d = {a: 1.5}
    x = a if a > 1 else None
    word = "big" if a > 1 else None
    named = Named(a) if a > 2 else None
    print(x, f"{x}", d.get(2), word, named, (1, x))
    if a > 3:
        raise ValueError(f"got {word} {d.get(3)}")
    return a


def test_values_that_may_be_none(capfd: pytest.CaptureFixture[str]) -> None:
    """Each lane shows its value, or None."""
    values = np.array([0, 2, 3, 4])
    with pytest.raises(pcbatch.BatchRuntimeError, match="got big None"):
        pcbatch.batch(shows_what_may_be_none)(values)
    lines = capfd.readouterr().out.splitlines()
    for k, value in enumerate(values.tolist()):
        with contextlib.suppress(ValueError):
            shows_what_may_be_none(value)
        assert [line for line in lines if line.startswith(f"[lane {k}] ")] == [
            f"[lane {k}] {line}" for line in capfd.readouterr().out.splitlines()
        ]
