"""Render a window of the Mandelbrot set, or of a Julia set, as text."""

from random import Random

PALETTE = " .:-=+*#%@"


def escape_time(z, c, limit):
    """Number of iterations before |z| exceeds 2, or `limit` if it never does."""
    for i in range(limit):
        if z.real * z.real + z.imag * z.imag > 4.0:
            return i
        z = z * z + c
    return limit


def pixels(cx, cy, span, width, height):
    """Yield rows of complex sample points; characters are twice as tall as wide."""
    step = span / width
    for row in range(height):
        y = cy + (row - (height - 1) / 2) * step * 2
        yield [complex(cx + (col - (width - 1) / 2) * step, y) for col in range(width)]


def shade(n, limit):
    if n >= limit:
        return PALETTE[-1]
    return PALETTE[n * (len(PALETTE) - 1) // limit]


def mandelbrot(cx, cy, span, width, height, limit):
    return [
        [escape_time(0j, p, limit) for p in row]
        for row in pixels(cx, cy, span, width, height)
    ]


def julia(c, cx, cy, span, width, height, limit):
    return [
        [escape_time(p, c, limit) for p in row]
        for row in pixels(cx, cy, span, width, height)
    ]


def run_length(line):
    """Compress 'aaabcc' into 'a3b1c2'."""
    out = []
    prev, count = "", 0
    for ch in line:
        if ch == prev:
            count += 1
            continue
        if count:
            out.append(f"{prev}{count}")
        prev, count = ch, 1
    if count:
        out.append(f"{prev}{count}")
    return "".join(out)


def solve(kind, seed_re, seed_im, cx, cy, span, width, height, limit):
    if kind == "mandelbrot":
        grid = mandelbrot(cx, cy, span, width, height, limit)
    elif kind == "julia":
        grid = julia(complex(seed_re, seed_im), cx, cy, span, width, height, limit)
    else:
        raise ValueError(f"unknown fractal {kind!r}")
    lines = ["".join(shade(n, limit) for n in row) for row in grid]
    inside = sum(n >= limit for row in grid for n in row)
    packed = run_length(lines[len(lines) // 2])
    return "\n".join(lines), inside, packed


def examples(n):
    rng = Random(101)
    julia_seeds = [(-0.8, 0.156), (0.285, 0.01), (-0.4, 0.6), (-0.70176, -0.3842)]
    result = []
    for _ in range(n):
        width = rng.randint(12, 28)
        height = rng.randint(5, 9)
        limit = rng.randint(10, 25)
        if rng.random() < 0.5:
            args = ("mandelbrot", 0.0, 0.0, rng.uniform(-1.0, 0.0), rng.uniform(-0.5, 0.5))
        else:
            re, im = rng.choice(julia_seeds)
            args = ("julia", re, im, rng.uniform(-0.3, 0.3), rng.uniform(-0.3, 0.3))
        result.append((*args, rng.uniform(0.5, 3.0), width, height, limit))
    return result
