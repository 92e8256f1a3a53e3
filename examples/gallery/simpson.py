"""Adaptive quadrature: recursion that goes deep only where the integrand needs it, at other places in every lane."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

import pcbatch


def line(x, width):
    """A Lorentzian line around 0."""
    return width / (x * x + width * width)


@pcbatch.batch
def simpson(a, fa, m, fm, b, fb, width, tolerance):
    """The integral from `a` over the midpoint `m` to `b`, and how often the integrand was evaluated."""
    left, right = (a + m) / 2, (m + b) / 2
    fleft, fright = line(left, width), line(right, width)
    coarse = (b - a) / 6 * (fa + 4 * fm + fb)
    fine = (b - a) / 12 * (fa + 4 * fleft + 2 * fm + 4 * fright + fb)
    if b - a < 0.1 and abs(fine - coarse) < 15 * tolerance:  # on a wide interval they may agree by chance
        return fine + (fine - coarse) / 15, 2
    below, calls = simpson(a, fa, left, fleft, m, fm, width, tolerance / 2)
    above, more = simpson(m, fm, right, fright, b, fb, width, tolerance / 2)
    return below + above, calls + more + 2


@pcbatch.batch
def integral(width, tolerance=1e-4):
    """The integral of the line from 0 to 1."""
    area, calls = simpson(0.0, line(0.0, width), 0.5, line(0.5, width), 1.0, line(1.0, width), width, tolerance)
    return area, calls + 3


def main(lanes: int = 1000) -> None:
    """Integrate lines from wide to narrow and compare with the closed form."""
    widths = np.geomspace(0.05, 1, lanes)
    areas, calls = integral(jnp.array(widths))
    np.testing.assert_allclose(areas, np.arctan(1 / widths), atol=1e-4)
    print(f"simpson: {lanes} integrals, {calls.min()} to {calls.max()} evaluations, all within 1e-4 of the closed form")


if __name__ == "__main__":
    main()
