"""Host code that waits, against what one has for nothing: `python -m benchmarks.serving [--quick] [--only search]`

- search: tree search with a value network, a game in plain Python (python-chess where it is installed, else four in a
  row). By `gather`, by one jitted call for each request, and by threads with a batcher in lock-step: it waits until
  every game that goes on has asked, and answers all by one jitted call.
- scipy: runs of `scipy.optimize` whose objective is computed by JAX, of few and of many numbers, by `gather` and one
  after the other; BLAS, of which scipy's own code has the smallest matrices, has one thread.
- tokens: coroutines that generate tokens with a check in Python (`benchmarks/tokens.py`), by lanes that stay open, by
  batches, and by batches by hand.
- load: requests of threads and coroutines, of five kinds, some with errors, some cancelled: every answer is compared.

Times are CPU seconds of the process (`NPROC=1`), and of the clock on the wall beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import random
import resource
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before it is loaded

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch
from benchmarks.tokens import tokens

LARGE = 1024  # units of the hidden layers
FOUR = [(dx, dy) for dx, dy in ((1, 0), (0, 1), (1, 1), (1, -1))]


class FourInARow:
    """Four in a row on 7 by 6 fields, in plain Python."""

    def __init__(self) -> None:
        self.columns: list[list[int]] = [[] for _ in range(7)]
        self.turn, self.winner, self.count = 1, 0, 0

    def moves(self) -> list[int]:
        """Return the columns with room; none when the game is over."""
        return [] if self.winner else [k for k in range(7) if len(self.columns[k]) < 6]

    def push(self, move: int) -> None:
        """Make a move."""
        self.columns[move].append(self.turn)
        x, y = move, len(self.columns[move]) - 1
        if any(self._line(x, y, dx, dy) >= 4 for dx, dy in FOUR):
            self.winner = self.turn
        self.turn, self.count = -self.turn, self.count + 1

    def _line(self, x: int, y: int, dx: int, dy: int) -> int:
        count = 1
        for sign in (1, -1):
            u, v = x + sign * dx, y + sign * dy
            while 0 <= u < 7 and 0 <= v < len(self.columns[u]) and self.columns[u][v] == self.turn:
                count, u, v = count + 1, u + sign * dx, v + sign * dy
        return count

    def copy(self) -> FourInARow:
        """Return a copy of the game."""
        other = FourInARow()
        other.columns = [list(column) for column in self.columns]
        other.turn, other.winner, other.count = self.turn, self.winner, self.count
        return other

    def features(self) -> np.ndarray:
        """Return the board from the side of who moves, float32[42]."""
        board = np.zeros((7, 6), np.float32)
        for k, column in enumerate(self.columns):
            board[k, : len(column)] = column
        return board.ravel() * self.turn

    def key(self) -> Any:
        """Return what tells positions apart."""
        return tuple(map(tuple, self.columns))


class Chess:
    """A game of python-chess behind the same methods."""

    def __init__(self, board: Any = None) -> None:
        import chess

        self.board = chess.Board() if board is None else board

    def moves(self) -> list[Any]:
        """Return the legal moves."""
        return list(self.board.legal_moves)

    def push(self, move: Any) -> None:
        """Make a move."""
        self.board.push(move)

    def copy(self) -> Chess:
        """Return a copy of the game."""
        return Chess(self.board.copy(stack=False))

    def features(self) -> np.ndarray:
        """Return the pieces by kind and field, float32[768]."""
        board = np.zeros((12, 64), np.float32)
        for field, piece in self.board.piece_map().items():
            board[piece.piece_type - 1 + 6 * (piece.color != self.board.turn), field] = 1
        return board.ravel()

    def key(self) -> Any:
        """Return what tells positions apart."""
        return self.board._transposition_key()


def search(game: Any, value: Callable[[np.ndarray], Any], simulations: int) -> Any:
    """Return the most visited move of a tree search (UCT with a value network at its leaves)."""
    root: dict[str, Any] = {"visits": 0, "sum": 0.0, "children": None}
    for _ in range(simulations):
        state, node, path = game.copy(), root, [root]
        while node["children"]:
            total = math.log(node["visits"] + 1)
            move, node = max(
                node["children"].items(),
                key=lambda item: (
                    9.0
                    if not item[1]["visits"]
                    else -item[1]["sum"] / item[1]["visits"] + math.sqrt(2 * total / item[1]["visits"])
                ),
            )
            state.push(move)
            path.append(node)
        moves = state.moves()
        node["children"] = {move: {"visits": 0, "sum": 0.0, "children": None} for move in moves}
        score = float(value(state.features())) if moves else -1.0
        for each in reversed(path):
            each["visits"] += 1
            each["sum"] += score
            score = -score
    return max(root["children"].items(), key=lambda item: item[1]["visits"])[0]


def opening(kind: Callable[[], Any], seed: int) -> Any:
    """Return a game after some random moves."""
    r, game = random.Random(seed), kind()
    for _ in range(4):
        game.push(r.choice(game.moves()))
    return game


def weights(inputs: int, hidden: int) -> list[Any]:
    """Return the layers of a value network."""
    sizes, r = (inputs, hidden, hidden, 1), np.random.default_rng(0)
    return [
        jnp.asarray(r.normal(size=(m, n)) / math.sqrt(m), jnp.float32) for m, n in zip(sizes, sizes[1:], strict=False)
    ]


def network(layers: Any, x: Any) -> Any:
    """Return the value of a position, from -1 to 1."""
    for layer in layers[:-1]:
        x = jnp.tanh(x @ layer)
    return jnp.tanh(x @ layers[-1])[0]


class LockStep:
    """Threads that ask: a batch is run when every thread that goes on has asked."""

    def __init__(self, call: Callable[[np.ndarray], Any], threads: int) -> None:
        self.call, self.alive, self.width = call, threads, threads
        self.changed = threading.Condition()
        self.asked: list[tuple[np.ndarray, list[float]]] = []

    def ask(self, x: np.ndarray) -> float:
        """Wait for an answer."""
        answer: list[float] = []
        with self.changed:
            self.asked.append((x, answer))
            self._run_if_all_wait()
            self.changed.wait_for(lambda: bool(answer))
        return answer[0]

    def leave(self) -> None:
        """Say that this thread asks no more."""
        with self.changed:
            self.alive -= 1
            self._run_if_all_wait()

    def _run_if_all_wait(self) -> None:
        if self.asked and len(self.asked) >= self.alive:
            batch = np.zeros((self.width, *self.asked[0][0].shape), np.float32)
            for k, (x, _) in enumerate(self.asked):
                batch[k] = x
            for (_, answer), value in zip(self.asked, np.asarray(self.call(batch)), strict=False):
                answer.append(float(value))
            self.asked = []
            self.changed.notify_all()


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return a result, its CPU seconds, and its seconds on the wall."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = call()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def compared(title: str, ways: dict[str, Callable[[], Any]], repeats: int, same: Callable[[Any, Any], bool]) -> None:
    """Print a line for each way, the first of them ours; all must give the same."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    first: Any = None
    for turn in range(repeats + 1):
        for name, call in ways.items():
            result, cpu, wall = timed(call)
            first = result if first is None else first
            assert same(first, result), f"{title}: {name} gives something else"
            if turn:  # the first one compiles
                times[name].append((cpu, wall))
    medians = {name: np.median(np.array(rows), axis=0) for name, rows in times.items()}
    ours = medians[next(iter(ways))]
    for name, (cpu, wall) in medians.items():
        print(f"| {title} | {name} | {cpu:.3f} | {wall:.3f} | {cpu / ours[0]:.2f} | {wall / ours[1]:.2f} |", flush=True)


def searches(games: int, simulations: int, repeats: int) -> None:
    """Compare the ways of tree search."""
    kinds: dict[str, tuple[Callable[[], Any], int]] = {"four in a row": (FourInARow, 42)}
    try:
        import chess  # noqa: F401

        kinds["chess"] = (Chess, 768)
    except ImportError:
        print("(python-chess is not installed: four in a row alone)")
    for name, (kind, inputs) in kinds.items():
        for hidden in (256, LARGE):
            layers = weights(inputs, hidden)
            one, many = jax.jit(network), jax.jit(jax.vmap(network, (None, 0)))
            batched = pcbatch.batch(network, in_axes=(None, 0))

            def asked(seed: int, kind: Any = kind, layers: Any = layers, f: Any = batched) -> str:
                return str(search(opening(kind, seed), lambda x: f.ask(layers, x), simulations))

            def alone(seed: int, kind: Any = kind, layers: Any = layers, f: Any = one) -> str:
                return str(search(opening(kind, seed), lambda x: f(layers, x), simulations))

            def in_lock_step(kind: Any = kind, layers: Any = layers, f: Any = many) -> list[str]:
                batcher = LockStep(lambda batch: f(layers, batch), games)

                def run(seed: int) -> str:
                    try:
                        return str(search(opening(kind, seed), batcher.ask, simulations))
                    finally:
                        batcher.leave()

                with ThreadPoolExecutor(games) as pool:
                    return list(pool.map(run, range(games)))

            def mostly(a: list[str], b: list[str]) -> bool:
                return sum(x == y for x, y in zip(a, b, strict=True)) >= 0.9 * len(a)  # sums in another order

            ways = {
                "gather": lambda run=asked: pcbatch.gather(run, range(games)),
                "one call for each request": lambda run=alone: [run(seed) for seed in range(games)],
                "threads in lock-step": in_lock_step,
            }
            compared(f"{name}, {games} games of {simulations}, layers of {hidden}", ways, repeats, mostly)


def optimisations(runs: int, rows: int, size: int, repeats: int) -> None:
    """Compare `scipy.optimize` by `gather` with a loop: losses over so many rows of so many numbers."""
    from scipy.optimize import minimize

    data = jnp.asarray(np.random.default_rng(1).normal(size=(rows, size)), jnp.float32)

    def energy(data: Any, x: Any, target: Any) -> Any:
        return jnp.mean(jnp.log1p(jnp.exp(-jnp.tanh(data @ x) * target))) + 0.01 * jnp.sum(x**2)

    def both(data: Any, x: Any, target: Any) -> Any:
        return jax.value_and_grad(energy, 1)(data, x, target)

    one, batched = jax.jit(both), pcbatch.batch(both, in_axes=(None, 0, 0))
    targets = [np.sign(np.random.default_rng(k).normal(size=rows)).astype(np.float32) for k in range(runs)]

    def minimum(k: int, ask: Any) -> float:
        def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = ask(data, x.astype(np.float32), targets[k])
            return float(value), np.asarray(slope, np.float64)

        return float(minimize(objective, np.zeros(size), jac=True, method="L-BFGS-B", options={"maxiter": 40}).fun)

    ways = {
        "gather": lambda: pcbatch.gather(lambda k: minimum(k, batched.ask), range(runs)),
        "a loop": lambda: [minimum(k, one) for k in range(runs)],
    }
    compared(
        f"scipy.optimize, {runs} runs, {rows} rows of {size}",
        ways,
        repeats,
        lambda a, b: bool(np.allclose(a, b, rtol=1e-2)),
    )


def load(requests: int) -> None:
    """Answer requests of 32 threads and 1,000 coroutines, and compare each answer."""

    @pcbatch.batch
    def steps(n: Any) -> Any:
        assert n > 0
        count = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        return count

    @pcbatch.batch
    def squares(x: Any) -> Any:
        return x * x

    @pcbatch.batch
    def total(xs: Any) -> Any:
        result = 0
        for x in xs:
            result += x
        return result

    @pcbatch.batch
    def louder(text: Any) -> Any:
        return text.upper() + "!"

    @pcbatch.batch
    def endless(n: Any) -> Any:
        while n < 0:
            n = n - 1 if n > -5 else -1
        return n

    collatz = {n: int(steps.plain(n)) for n in range(1, 100)}

    def request(r: random.Random) -> tuple[Any, tuple[Any, ...], Any]:
        k = r.randrange(1, 100)
        if r.random() < 0.01:
            return steps, (-k,), pcbatch.BatchRuntimeError
        match r.randrange(5):
            case 0:
                return steps, (k,), collatz[k]
            case 1:
                return squares, (np.full(3, k, np.float32),), [float(k * k)] * 3
            case 2:
                return total, ([k] * (k % 5 + 1),), k * (k % 5 + 1)
            case 3:
                return louder, ("a" * (k % 7 + 1),), "A" * (k % 7 + 1) + "!"
        return endless, (k,), k

    def check(answer: Any, want: Any) -> None:
        found = type(answer) if isinstance(answer, Exception) else np.asarray(answer).tolist()
        assert found == want, (found, want)

    def asker(seed: int, count: int) -> int:
        r = random.Random(seed)
        for _ in range(count):
            f, args, want = request(r)
            try:
                answer = f.ask(*args)
            except pcbatch.BatchRuntimeError as error:
                answer = error
            check(answer, want)
        return count

    async def coroutine(seed: int, count: int) -> int:
        r, done = random.Random(seed), 0
        for _ in range(count):
            f, args, want = request(r)
            task = asyncio.ensure_future(f.ask(*args))
            if r.random() < 0.01:
                await asyncio.sleep(0)
                task.cancel()
            try:
                check(await task, want)
            except pcbatch.BatchRuntimeError as error:
                check(error, want)
            except asyncio.CancelledError:
                continue
            done += 1
        return done

    async def coroutines() -> int:
        return sum(await asyncio.gather(*(coroutine(10_000 + k, requests // 2000) for k in range(1000))))

    before = threading.active_count()
    sizes = []
    for _ in range(2):
        begun = time.perf_counter()
        with pcbatch.serving(timeout=2.0) as server:
            with ThreadPoolExecutor(34) as pool:
                futures = [pool.submit(asker, k, requests // 64) for k in range(32)]
                stuck, waiting = pool.submit(endless.ask, -3), pool.submit(lambda: asyncio.run(coroutines()))
                answered = sum(future.result() for future in futures) + waiting.result()
                assert isinstance(stuck.exception(), pcbatch.BatchRuntimeError)
        sizes.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        print(f"load: {answered:,} answers, each its own, in {time.perf_counter() - begun:.1f} s; {server.report()}")
    left = threading.active_count() - before
    print(f"load: {left} threads left; {sizes[0]:.0f} MB after the first round, {sizes[1]:.0f} MB after the second")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer games, runs and requests")
    parser.add_argument("--only", default="", choices=("", "search", "scipy", "tokens", "load"))
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    less = 4 if options.quick else 1
    print("| program | way | CPU s | wall s | CPU over ours | wall over ours |\n|---|---|---:|---:|---:|---:|")
    if options.only in ("", "search"):
        searches(64, 50 // less, options.repeats)
    if options.only in ("", "scipy"):
        optimisations(256 // less, 400, 20, options.repeats)
        optimisations(256 // less, 4000, 100, options.repeats)
    if options.only in ("", "tokens"):
        tokens(64, 60 // less, options.repeats)
    if options.only in ("", "load"):
        load(10_000 // less)


if __name__ == "__main__":
    main()
