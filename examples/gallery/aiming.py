"""Host code that waits: plain Python aims at targets, and asks a batched simulation where each shot lands."""

from __future__ import annotations

import asyncio
import math

import jax.numpy as jnp
import numpy as np

import pcbatch

SPEED, TIME_STEP = 60.0, 0.02


@pcbatch.batch
def flight(angle, drag):
    """Where a ball lands that is shot at an angle, with drag by the square of its speed, and after how many steps."""
    x, y, steps = 0.0, 0.0, 0
    u, v = SPEED * jnp.cos(angle), SPEED * jnp.sin(angle)
    while y >= 0.0:
        slowed = 1.0 - TIME_STEP * drag * jnp.sqrt(u * u + v * v)
        u, v = u * slowed, v * slowed - TIME_STEP * 9.81
        x, y, steps = x + TIME_STEP * u, y + TIME_STEP * v, steps + 1
    return x, steps


async def aim(target, drag, ask):
    """The flattest angle that reaches a target, by shots: each depends on where the last one landed."""
    low, high, shots = 0.02, 0.6, 0
    while high - low > 1e-3:
        angle = (low + high) / 2
        landed, _ = await ask(np.float32(angle), np.float32(drag))
        low, high = (angle, high) if landed < target else (low, angle)
        shots += 1
    return high, shots


async def aim_at_all(targets, drags, ask):
    """Aim at every target at once."""
    return await asyncio.gather(*(aim(*pair, ask) for pair in zip(targets, drags, strict=True)))


def main(lanes: int = 40) -> None:
    """Aim at targets by the simulation of a batch, and by that of plain Python."""

    async def plainly(angle, drag):
        return flight.plain(angle, drag)

    rng = np.random.default_rng(0)
    drags = rng.uniform(0.0005, 0.004, lanes)
    distances = rng.uniform(30.0, 150.0, lanes)
    found = asyncio.run(aim_at_all(distances, drags, flight.ask))
    few = slice(0, 3)  # each shot of plain JAX takes a tenth of a second
    plain = asyncio.run(aim_at_all(distances[few], drags[few], plainly))
    np.testing.assert_allclose([angle for angle, _ in found[few]], [angle for angle, _ in plain], atol=2e-3)
    landed, steps = flight(jnp.array([angle for angle, _ in found], jnp.float32), jnp.array(drags, jnp.float32))
    np.testing.assert_allclose(landed, distances, atol=1.5)
    shots = sum(count for _, count in found)
    print(
        f"aiming: {lanes} targets hit after {shots} shots of {steps.min()} to {steps.max()} steps, "
        f"angles of {math.degrees(min(found)[0]):.0f} to {math.degrees(max(found)[0]):.0f} degrees"
    )


if __name__ == "__main__":
    main()
