"""Signals and estimates."""

import math

import jax.numpy as jnp

from benchmarks.fifty_lines.program import Program, each, integers, uniform, vectors


def robust_filter(noise, signal, length):
    """A scalar Kalman filter that rejects outliers, restarts after many, and adapts its noise."""
    mean, variance = 0.0, 10.0
    process = 0.1
    loglik = 0.0
    outliers = 0
    restarts = 0
    k = 0
    while k < length:
        z = signal[k]
        variance = variance + process
        innovation = z - mean
        spread = variance + noise
        score = innovation * innovation / spread
        if score > 9.0:
            outliers += 1
            if outliers >= 3:
                mean, variance = z, 10.0
                outliers = 0
                restarts += 1
                loglik -= 5.0
            else:
                process = process * 1.5
                loglik -= 0.5 * math.log(2 * math.pi * spread) + 4.5
        else:
            outliers = 0
            gain = variance / spread
            mean = mean + gain * innovation
            variance = (1 - gain) * variance
            loglik -= 0.5 * (math.log(2 * math.pi * spread) + score)
            if score < 0.5:
                process = process * 0.9
                if process < 0.01:
                    process = 0.01
        if restarts > 3:
            break
        k += 1
    if restarts > 0:
        loglik = loglik - restarts
    return loglik


def trust_region(start, stiffness):
    """The least value of a function of four variables, by a trust region with a dogleg."""

    def value(x):
        return jnp.sum(stiffness * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def slope(x):
        inner = x[1:] - x[:-1] ** 2
        g = jnp.zeros_like(x)
        g = g.at[:-1].add(-4 * stiffness * x[:-1] * inner - 2 * (1 - x[:-1]))
        return g.at[1:].add(2 * stiffness * inner)

    x = start
    radius = 0.5
    current = value(x)
    for _ in range(60):
        g = slope(x)
        norm = jnp.sqrt(jnp.sum(g * g) + 1e-12)
        if norm < 1e-3:
            break
        curvature = jnp.sum(g * (slope(x + 1e-3 * g / norm) - g)) / (1e-3 * norm)
        if curvature > 0:
            length = norm / curvature
            if length > radius:
                length = radius
        else:
            length = radius
        step = -length * g / norm
        trial = value(x + step)
        predicted = length * norm - 0.5 * length * length * curvature
        if predicted <= 0:
            radius = 0.5 * radius
            continue
        ratio = (current - trial) / predicted
        if ratio < 0.25:
            radius = 0.25 * radius
        elif ratio > 0.75 and length >= 0.99 * radius:
            radius = min(2 * radius, 10.0)
        if ratio > 0.1:
            x = x + step
            current = trial
        if radius < 1e-6:
            break
    return current


def adaptive_integral(scale, low, high):
    """An integral by Simpson's rule, with a stack of intervals instead of recursion."""

    def f(x):
        return math.exp(-scale * x * x) * math.cos(5 * x) + 0.1 * math.sqrt(abs(x) + 0.01)

    def simpson(fa, fm, fb, width):
        return width / 6 * (fa + 4 * fm + fb)

    stack = [(low, high, 1e-3, 0)]
    total = 0.0
    pieces = 0
    deepest = 0
    while stack:
        a, b, tolerance, depth = stack.pop()
        m = 0.5 * (a + b)
        fa, fm, fb = f(a), f(m), f(b)
        whole = simpson(fa, fm, fb, b - a)
        left = simpson(fa, f(0.5 * (a + m)), fm, m - a)
        right = simpson(fm, f(0.5 * (m + b)), fb, b - m)
        error = left + right - whole
        if depth > deepest:
            deepest = depth
        if abs(error) < 15 * tolerance or depth >= 8:
            total += left + right + error / 15
            pieces += 1
        else:
            stack.append((a, m, 0.5 * tolerance, depth + 1))
            stack.append((m, b, 0.5 * tolerance, depth + 1))
        if pieces > 100:
            break
    if deepest == 8:
        return total * (1 + 1e-6 * pieces)
    return total


PROGRAMS = (
    Program(robust_filter, each(uniform(0.5, 2), vectors(-3, 3, 24), integers(8, 24)), smooth=True),
    Program(trust_region, each(vectors(-1, 1, 4), uniform(1, 20)), smooth=True),
    Program(adaptive_integral, each(uniform(0.5, 3), uniform(-2, -1), uniform(1, 2)), smooth=True),
)
