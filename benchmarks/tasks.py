"""Independent calls side by side, against lanes: `python -m benchmarks.tasks [--only trees gradients] [--repeats 15]`

Recursions, of one example and of 1,024, with `fork="always"` and `fork="never"`; queens also against C, compiled with
`cc -O2` where there is one. And the TreeLSTM of `examples.treelstm`, against batches by hand and against a ceiling: all
leaves in one product and all other nodes in another, as if none needed another. The gradient of its loss is compared
with those by hand: by JAX, and with a backward pass by hand too. Results are compared before anything is timed. CPU
seconds of the process, medians, all ways in turn; XLA gets one thread with NPROC=1.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks import tree_backward
from benchmarks.common import interleaved_cpu_medians
from benchmarks.recursions import fib, queens
from examples.treelstm import by_hand
from examples.treelstm.data import generate
from examples.treelstm.model import initial_weights, loss, sentiment

Ways = dict[str, Callable[[], Any]]
PARTS = ("recursions", "trees", "gradients")
LANES, TASKS, FORWARD = "lanes", "tasks", "without gradient"
DEEPEST, EPS = 24, 1e-7
QUEENS_IN_C = """
int queens(int board, int columns, int left, int right) {
  if (columns == board) return 1;
  int solutions = 0;
  for (int free = board & ~(columns | left | right); free; ) {
    int queen = free & -free;
    free ^= queen;
    solutions += queens(board, columns | queen, (left | queen) << 1, (right | queen) >> 1);
  }
  return solutions;
}
"""


def halves(n):
    """Fibonacci in floats: sums that are made in the order of the source, so that each call has a frame."""
    if n <= 1:
        return 1.0
    return halves(n - 2) + halves(n - 1)


def integrand(x):
    """A function that wiggles at one end, with a kink."""
    return jnp.sin(1.0 / (x + 0.005)) + jnp.sqrt(jnp.abs(x - 0.3))


def simpson(a, b, fa, fm, fb):
    """Simpson's rule."""
    return (b - a) / 6 * (fa + 4 * fm + fb)


def quadrature(a, b, fa, fm, fb, whole, eps, deep):
    """Adaptive quadrature by halving."""
    m = (a + b) / 2
    flm, frm = integrand((a + m) / 2), integrand((m + b) / 2)
    left, right = simpson(a, m, fa, flm, fm), simpson(m, b, fm, frm, fb)
    delta = left + right - whole
    if abs(delta) <= 15 * eps or deep >= DEEPEST:
        return left + right + delta / 15
    one = quadrature(a, m, fa, flm, fm, left, eps / 2, deep + 1)
    return one + quadrature(m, b, fm, frm, fb, right, eps / 2, deep + 1)


def interval(eps: float) -> tuple[Any, ...]:
    """The arguments of `quadrature` for the integral from 0 to 1, one example."""
    a, m, b = jnp.zeros(1), jnp.full(1, 0.5), jnp.ones(1)
    fa, fm, fb = integrand(a), integrand(m), integrand(b)
    return a, b, fa, fm, fb, simpson(a, b, fa, fm, fb), jnp.full(1, eps), jnp.zeros(1, jnp.int32)


def both(fn: Any, *args: Any) -> Ways:
    """A function in lanes and by tasks."""
    f = fn if isinstance(fn, pcbatch.Batched) else pcbatch.batch(fn)
    lanes, tasks = f.with_options(plan=pcbatch.Plan(fork="never")), f.with_options(plan=pcbatch.Plan(fork="always"))
    return {LANES: partial(lanes, *args), TASKS: partial(tasks, *args)}


def in_c(size: int) -> Ways:
    """Queens by a C compiler, if there is one."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return {}
    folder = Path(tempfile.mkdtemp())
    (folder / "queens.c").write_text(QUEENS_IN_C)
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", folder / "queens.so", folder / "queens.c"], check=True)
    function = ctypes.CDLL(str(folder / "queens.so")).queens
    return {"C": lambda: np.array([function((1 << size) - 1, 0, 0, 0)])}


def recursions() -> Mapping[str, Ways]:
    """The cases without arrays."""
    zero = jnp.zeros(1, jnp.int32)
    many = jnp.asarray(np.random.default_rng(0).integers(0, 16, 1024), jnp.int32)
    found = {
        "Fibonacci of 24, sums": both(fib, zero + 24),
        "1,024 Fibonaccis, sums": both(fib, many),
        "1,024 Fibonaccis, frames": both(halves, many),
        "adaptive quadrature, one example": both(quadrature, *interval(EPS)),
    }
    for size in (8, 10):
        ways = both(queens, zero + ((1 << size) - 1), zero, zero, zero) | in_c(size)
        found[f"{size} queens, one example"] = ways
    return found


def cell(z: Any, *cs: Any) -> Any:
    """The state of a node from its gates and its children's cells."""
    i, *forget, o, u = jnp.split(z, 3 + len(cs), -1)
    c = jax.nn.sigmoid(i) * jnp.tanh(u) + sum(jax.nn.sigmoid(f) * c for f, c in zip(forget, cs, strict=True))
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def ceiling(w: Any, word: Any, x: Any) -> Any:
    """All leaves in one product, all other nodes in another."""
    hidden = w["leaf"].shape[0]
    h, c = cell(w["embedding"][word] @ w["leaf"] + w["leaf_bias"])
    node = cell(x[:, : 2 * hidden] @ w["node"] + w["node_bias"], x[:, 2 * hidden : 3 * hidden], x[:, 3 * hidden :])
    return h, c, *node


def trees(hidden: int, batch: int) -> Ways:
    """TreeLSTM on so many sentences."""
    host, w = generate(batch, 1), initial_weights(hidden, 0)
    given = jax.device_put(host)
    ways = both(sentiment, w, given)
    for width in (16, 64) if batch > 1 else ():
        level, plan = jax.jit(by_hand.sentiments), jax.device_put(by_hand.plan(host, width, multiple=8))
        ways[f"by hand, rows of {width}"] = partial(level, w, plan)
    inner = int(host.inner.sum())
    x = jnp.asarray(np.random.default_rng(0).normal(size=(inner, 4 * hidden)), jnp.float32)
    ways["ceiling"] = partial(jax.jit(ceiling), w, jnp.zeros(inner + batch, jnp.int32), x)
    return ways


def gradients(hidden: int, batch: int) -> Ways:
    """Loss and gradient of so many trees: in `jit`, with a tape as long as `f.tape` says, and outside by tasks."""
    host, w = generate(batch, 1), initial_weights(hidden, 0)
    given = jax.device_put(host)
    ways: Ways = {}
    for name, fork in ((LANES, "never"), (TASKS, "always")):
        model = loss.with_options(plan=pcbatch.Plan(fork=fork))
        model = model.with_options(max_tape=model.tape(w, given).max_tape)
        ways[name] = partial(jax.jit(_slope(model)), w, given)
    ways[f"{LANES}, one after the other"] = partial(
        jax.jit(_slope(loss.with_options(plan=pcbatch.Plan(emitter="scalar")))), w, given
    )
    ways[f"{TASKS}, no jit"] = partial(_slope(loss.with_options(plan=pcbatch.Plan(fork="always"))), w, given)
    for width in (16, 32, 64):
        plan = jax.device_put(by_hand.plan(host, width, multiple=8))
        ways[f"by hand, rows of {width}"] = partial(jax.jit(jax.value_and_grad(by_hand.mean_loss)), w, plan)
        ways[f"by hand, backward too, rows of {width}"] = partial(jax.jit(tree_backward.value_and_grad), w, plan)
    ways[f"{TASKS}, {FORWARD}"] = partial(jax.jit(loss.with_options(plan=pcbatch.Plan(fork="always"))), w, given)
    return ways


def _slope(model: Any) -> Callable[[Any, Any], Any]:
    return jax.value_and_grad(lambda w, trees: jnp.mean(model(w, trees)))


def table(title: str, ways: Ways, repeats: int) -> None:
    """Compare the results of all ways, then print the medians."""
    wanted = jax.tree.leaves(ways[LANES]())
    for name, call in ways.items():
        if name != "ceiling" and FORWARD not in name:
            for found, one in zip(jax.tree.leaves(call()), wanted, strict=True):
                np.testing.assert_allclose(np.asarray(found), np.asarray(one), rtol=2e-3, atol=1e-4, err_msg=name)
    medians = interleaved_cpu_medians(ways, repeats)
    base = medians[LANES]
    print(f"\n{title}\n\n| way | ms | times as fast as lanes |\n|---|---|---|")
    for name, median in medians.items():
        print(f"| {name} | {1e3 * median:.2f} | {base / median:.2f} |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--hidden", type=int, nargs="*", default=[64])
    parser.add_argument("--trees", type=int, nargs="*", default=[8, 64, 256])
    options = parser.parse_args()
    if "recursions" in options.only:
        for title, ways in recursions().items():
            table(title, ways, options.repeats)
    if "trees" in options.only:
        for hidden in options.hidden:
            for batch in options.trees:
                table(f"TreeLSTM, hidden {hidden}, {batch} trees", trees(hidden, batch), options.repeats)
    if "gradients" in options.only:
        for hidden in options.hidden:
            for batch in options.trees:
                title = f"TreeLSTM, loss and gradient, hidden {hidden}, {batch} trees"
                table(title, gradients(hidden, batch), options.repeats)


if __name__ == "__main__":
    main()
