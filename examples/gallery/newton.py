"""Newton's method with a line search: a loop in a loop, and how often either runs differs between lanes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch


def rosenbrock(x):
    """A curved valley with its minimum 0 at (1, 1)."""
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


@pcbatch.batch
def minimise(x, most=200):
    """The point that Newton's method reaches from `x`, and in how many iterations."""
    for iteration in range(most):
        gradient = jax.grad(rosenbrock)(x)
        if jnp.linalg.norm(gradient) < 1e-3:
            return x, iteration
        step = -jnp.linalg.solve(jax.hessian(rosenbrock)(x), gradient)
        if gradient @ step >= 0:  # the Hessian is not positive: go downhill
            step = -gradient
        size = 1.0
        while size > 1e-8 and rosenbrock(x + size * step) > rosenbrock(x) + 1e-4 * size * (gradient @ step):
            size /= 2
        x = x + size * step
    return x, most


def main(lanes: int = 500) -> None:
    """Start in many places and compare with the minimum, which is known."""
    starts = np.random.default_rng(0).uniform(-2, 2, (lanes, 2))
    ends, iterations = minimise(jnp.array(starts))
    np.testing.assert_array_less(iterations, 200)
    np.testing.assert_allclose(ends, np.ones((lanes, 2)), atol=5e-3)
    print(f"newton: {lanes} starts reach (1, 1) in {iterations.min()} to {iterations.max()} iterations, all to 5e-3")


if __name__ == "__main__":
    main()
