"""Recursive radix-2 FFT; uses it for convolution, and for finding the strongest tones."""

import cmath
import math
from functools import lru_cache
from random import Random


@lru_cache(maxsize=None)
def twiddles(n, sign):
    return tuple(cmath.exp(sign * 2j * math.pi * k / n) for k in range(n // 2))


def _transform(xs, sign):
    n = len(xs)
    if n == 1:
        return list(xs)
    even = _transform(xs[0::2], sign)
    odd = _transform(xs[1::2], sign)
    turned = [w * o for w, o in zip(twiddles(n, sign), odd)]
    return [e + t for e, t in zip(even, turned)] + [e - t for e, t in zip(even, turned)]


def next_power_of_two(n):
    return 1 << max(0, (n - 1).bit_length())


def pad(xs, size):
    return [complex(x) for x in xs] + [0j] * (size - len(xs))


def fft(xs):
    return _transform(pad(xs, next_power_of_two(len(xs))), -1)


def ifft(xs):
    n = len(xs)
    return [x / n for x in _transform(xs, +1)]


def convolve(a, b):
    """Coefficients of the product of two integer polynomials."""
    if not a or not b:
        return []
    size = next_power_of_two(len(a) + len(b) - 1)
    fa = _transform(pad(a, size), -1)
    fb = _transform(pad(b, size), -1)
    product = ifft([x * y for x, y in zip(fa, fb)])
    return [round(z.real) for z in product[: len(a) + len(b) - 1]]


def strongest(spectrum, count):
    """Indices of the strongest non-constant tones of a real signal."""
    half = len(spectrum) // 2
    ranked = sorted(range(1, half), key=lambda k: (-round(abs(spectrum[k]), 6), k))
    return [(k, round(abs(spectrum[k]), 4)) for k in ranked[:count]]


def solve(signal, kernel):
    spectrum = fft(signal)
    back = ifft(spectrum)
    error = max(abs(b.real - s) for b, s in zip(back, signal))
    if error > 1e-6:
        raise ArithmeticError("round trip failed")
    energy_time = sum(s * s for s in signal)
    energy_freq = sum(abs(c) ** 2 for c in spectrum) / len(spectrum)
    conv = convolve(signal, kernel)
    return strongest(spectrum, 3), abs(energy_time - energy_freq) < 1e-3, conv


def examples(n):
    rng = Random(303)
    result = []
    for _ in range(n):
        length = rng.choice([8, 12, 16, 20, 32, 40, 50])
        freqs = [rng.randint(1, length // 3) for _ in range(2)]
        signal = [
            round(sum(20.0 * math.sin(2 * math.pi * f * t / length) for f in freqs)) + rng.randint(-5, 5)
            for t in range(length)
        ]
        kernel = [rng.randint(-4, 4) for _ in range(rng.randint(3, 12))]
        result.append((signal, kernel))
    return result
