"""Coroutines that generate tokens and check them in Python: the part `tokens` of `python -m benchmarks.serving`.

Each of 64 coroutines asks again and again for a text of 10 to 500 tokens (short ones more often, as answers are), by a
recurrent model that writes one token after the other; Python checks the brackets of each text. Requests take lanes of
the running machine; or they make batches that end when the longest text does (`continuous=False`); or, by hand, a batch
of 64 is run in lock-step by `jax.vmap` of a `while_loop` when every coroutine that goes on has asked.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch

UNITS, WORDS, LONGEST = 256, 32, 500
Ask = Callable[[np.float32, np.int32], Awaitable[Any]]


def parameters() -> dict[str, Any]:
    """Return the weights of the model."""
    r = np.random.default_rng(0)
    shapes = {"embed": (WORDS, UNITS), "keep": (UNITS, UNITS), "gate": (UNITS, UNITS), "out": (UNITS, WORDS)}
    return {name: jnp.asarray(r.normal(size=shape) / shape[0] ** 0.5, jnp.float32) for name, shape in shapes.items()}


def step(p: Any, h: Any, token: Any) -> tuple[Any, Any]:
    """Return the state after a token, and the next token."""
    x = p["embed"][token]
    gate = jax.nn.sigmoid(h @ p["gate"] + x)
    h = gate * h + (1 - gate) * jnp.tanh(h @ p["keep"] + x)
    return h, jnp.argmax(h @ p["out"])


def generate(p: Any, seed: Any, length: Any) -> Any:
    """Write a text of so many tokens."""
    h, token, n = jnp.sin(seed * jnp.arange(UNITS)), 0, 0
    text = jnp.zeros(LONGEST, jnp.int32)
    while n < length:
        h, token = step(p, h, token)
        text = text.at[n].set(token)
        n = n + 1
    return text


def generate_by_hand(p: Any, seed: Any, length: Any) -> Any:
    """Return what `generate` does, by a loop of JAX, for `jax.vmap`."""

    def go(c: Any) -> Any:
        h, token, n, text = c
        h, token = step(p, h, token)
        return h, token, n + 1, text.at[n].set(token)

    start = jnp.sin(seed * jnp.arange(UNITS)), jnp.int32(0), jnp.int32(0), jnp.zeros(LONGEST, jnp.int32)
    return jax.lax.while_loop(lambda c: c[2] < length, go, start)[3]


def nested(text: np.ndarray) -> int:
    """Return how deep the brackets of a text are, in plain Python: tokens 0 to 7 open one, 8 to 15 close one."""
    depth = deepest = 0
    for token in text.tolist():
        depth = max(0, depth + (token < 8) - (8 <= token < 16))
        deepest = max(deepest, depth)
    return deepest


@dataclass
class LockStep:
    """Coroutines that ask: a batch is run when every one that goes on has asked."""

    call: Callable[[np.ndarray, np.ndarray], Any]
    alive: int
    width: int
    asked: list[tuple[np.float32, np.int32, asyncio.Future[Any]]] = field(default_factory=list)

    async def ask(self, seed: np.float32, length: np.int32) -> Any:
        """Wait for an answer."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.asked.append((seed, length, future))
        self.run_if_all_wait()
        return await future

    def run_if_all_wait(self) -> None:
        """Run a batch, in the loop itself: nobody else has anything to do."""
        if self.asked and len(self.asked) >= self.alive:
            seeds, lengths = np.zeros(self.width, np.float32), np.zeros(self.width, np.int32)
            asked, self.asked = self.asked, []
            for k, (seed, length, _) in enumerate(asked):
                seeds[k], lengths[k] = seed, length
            for (_, _, future), text in zip(asked, np.asarray(self.call(seeds, lengths)), strict=False):
                future.set_result(text)


async def writer(k: int, requests: int, ask: Ask, waits: list[tuple[float, int]]) -> tuple[int, int]:
    """Ask for texts and check them; return how many tokens they had, and what was found."""
    r, tokens, found = random.Random(k), 0, 0
    for _ in range(requests):
        length = int(10 * 50 ** r.random())
        begun = time.perf_counter()
        text = await ask(np.float32(r.random()), np.int32(length))
        waits.append((time.perf_counter() - begun, length))
        tokens, found = tokens + length, found + nested(np.asarray(text)[:length])
    return tokens, found


def tokens(coroutines: int, requests: int, repeats: int) -> None:
    """Print a line for each way."""
    p = parameters()
    batched = pcbatch.batch(generate, in_axes=(None, 0, 0))
    many = jax.jit(jax.vmap(generate_by_hand, (None, 0, 0)))

    async def asking(waits: list[tuple[float, int]]) -> list[tuple[int, int]]:
        def ask(seed: np.float32, length: np.int32) -> Any:
            return batched.ask(p, seed, length)

        return await asyncio.gather(*(writer(k, requests, ask, waits) for k in range(coroutines)))

    async def in_lock_step(waits: list[tuple[float, int]]) -> list[tuple[int, int]]:
        batcher = LockStep(lambda seeds, lengths: many(p, seeds, lengths), coroutines, coroutines)

        async def run(k: int) -> tuple[int, int]:
            found = await writer(k, requests, batcher.ask, waits)
            batcher.alive -= 1
            batcher.run_if_all_wait()
            return found

        return await asyncio.gather(*map(run, range(coroutines)))

    def served(waits: list[tuple[float, int]], continuous: bool) -> list[tuple[int, int]]:
        with pcbatch.serving(batched, continuous=continuous):
            return asyncio.run(asking(waits))

    ways: dict[str, Callable[[list[tuple[float, int]]], list[tuple[int, int]]]] = {
        "lanes of the running machine": lambda waits: asyncio.run(asking(waits)),
        "the same, by a thread (`serving`)": lambda waits: served(waits, True),
        "batch by batch (`continuous=False`)": lambda waits: served(waits, False),
        "batch by batch, by hand": lambda waits: asyncio.run(in_lock_step(waits)),
    }
    rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in ways}
    total, first = 0, None
    for turn in range(repeats + 1):
        for name, run in ways.items():
            waits: list[tuple[float, int]] = []
            cpu, wall = time.process_time(), time.perf_counter()
            found = run(waits)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            first = found if first is None else first
            total = sum(count for count, _ in found)
            assert [count for count, _ in found] == [count for count, _ in first]
            if turn:  # the first one compiles
                seconds, lengths = np.asarray(waits).T
                p50, p99 = np.percentile(1e3 * seconds, (50, 99))
                rows[name].append((cpu, wall, p50, p99, *np.percentile(1e3 * seconds / lengths, (50, 99))))
    ours = np.median(rows[next(iter(ways))], axis=0)
    print(f"\n{coroutines} coroutines, {total:,} tokens")
    print("| way | tokens per CPU s | per s of the clock | CPU, clock over lanes | p50, p99 ms | p50, p99 ms a token |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, all_rows in rows.items():
        cpu, wall, p50, p99, each50, each99 = np.median(all_rows, axis=0)
        ratio = f"{cpu / ours[0]:.2f}, {wall / ours[1]:.2f}"
        waited = f"{p50:.1f}, {p99:.1f} | {each50:.2f}, {each99:.2f}"
        print(f"| {name} | {total / cpu:,.0f} | {total / wall:,.0f} | {ratio} | {waited} |", flush=True)
