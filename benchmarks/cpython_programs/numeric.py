"""Numerical methods over floats and lists of floats."""

from __future__ import annotations

import cmath
import math

from benchmarks.cpython_programs.program import Program, entering

PROGRAMS: list[Program] = []
program = entering(PROGRAMS)


@program("Brent's method, a root", lambda rng: (rng.uniform(0.5, 4.0), rng.uniform(0.1, 2.0)))
def brent(a, b):
    def f(x):
        return a * math.exp(-x) - b * x

    left, right = 0.0, 6.0
    fl, fr = f(left), f(right)
    if abs(fl) < abs(fr):
        left, right, fl, fr = right, left, fr, fl
    c, fc = left, fl
    d = c
    bisected = True
    rounds = 0
    while abs(fr) > 1e-5 and abs(right - left) > 1e-5 and rounds < 50:
        rounds += 1
        if fl != fc and fr != fc:
            s = left * fr * fc / ((fl - fr) * (fl - fc))
            s += right * fl * fc / ((fr - fl) * (fr - fc))
            s += c * fl * fr / ((fc - fl) * (fc - fr))
        else:
            s = right - fr * (right - left) / (fr - fl)
        low, high = sorted(((3 * left + right) / 4, right))
        step = abs(right - c) if bisected else abs(c - d)
        bisected = not low < s < high or abs(s - right) >= step / 2 or step < 1e-5
        if bisected:
            s = (left + right) / 2
        fs = f(s)
        d, c, fc = c, right, fr
        if fl * fs < 0:
            right, fr = s, fs
        else:
            left, fl = s, fs
        if abs(fl) < abs(fr):
            left, right, fl, fr = right, left, fr, fl
    return right


def _signal(rng):
    return ([rng.uniform(-1, 1) for _ in range(rng.choice((8, 16)))],)


def _fft(xs):
    n = len(xs)
    if n == 1:
        return xs
    even, odd = _fft(xs[::2]), _fft(xs[1::2])
    out = [0j] * n
    for k in range(n // 2):
        turned = cmath.exp(-2j * math.pi * k / n) * odd[k]
        out[k] = even[k] + turned
        out[k + n // 2] = even[k] - turned
    return out


@program("FFT over lists, recursive", _signal)
def spectrum(signal):
    return [abs(z) for z in _fft([x + 0j for x in signal])]


def _matrices(rng):
    return tuple([[rng.randint(-9, 9) for _ in range(4)] for _ in range(4)] for _ in range(2))


def _plus(a, b, sign=1):
    return [[x + sign * y for x, y in zip(r, s)] for r, s in zip(a, b)]  # noqa: B905


def _strassen(a, b):
    n = len(a)
    if n <= 2:
        return [[sum(a[i][k] * b[k][j] for k in range(n)) for j in range(n)] for i in range(n)]
    h = n // 2
    a11, a12 = [row[:h] for row in a[:h]], [row[h:] for row in a[:h]]
    a21, a22 = [row[:h] for row in a[h:]], [row[h:] for row in a[h:]]
    b11, b12 = [row[:h] for row in b[:h]], [row[h:] for row in b[:h]]
    b21, b22 = [row[:h] for row in b[h:]], [row[h:] for row in b[h:]]
    m1 = _strassen(_plus(a11, a22), _plus(b11, b22))
    m2 = _strassen(_plus(a21, a22), b11)
    m3 = _strassen(a11, _plus(b12, b22, -1))
    m4 = _strassen(a22, _plus(b21, b11, -1))
    m5 = _strassen(_plus(a11, a12), b22)
    m6 = _strassen(_plus(a21, a11, -1), _plus(b11, b12))
    m7 = _strassen(_plus(a12, a22, -1), _plus(b21, b22))
    c11 = _plus(_plus(m1, m4), _plus(m7, m5, -1))
    c22 = _plus(_plus(m1, m2, -1), _plus(m3, m6))
    c12, c21 = _plus(m3, m5), _plus(m2, m4)
    return [r + s for r, s in zip(c11, c12)] + [r + s for r, s in zip(c21, c22)]  # noqa: B905


@program("Strassen's product over lists, 4 x 4", _matrices)
def strassen(a, b):
    return _strassen(a, b)


def _linear_program(rng):
    rows = [[float(rng.randint(1, 9)) for _ in range(3)] for _ in range(3)]
    return rows, [float(rng.randint(10, 50)) for _ in range(3)], [float(rng.randint(1, 9)) for _ in range(3)]


@program("simplex over lists of lists", _linear_program)
def simplex(rows, limits, gains):
    m, n = len(rows), len(gains)
    table = [rows[i] + [1.0 if i == j else 0.0 for j in range(m)] + [limits[i]] for i in range(m)]
    table.append([-g for g in gains] + [0.0] * (m + 1))
    for _ in range(20):
        column = min(range(m + n), key=lambda j: table[-1][j])
        if table[-1][column] > -1e-4:
            break
        pivot, least = -1, math.inf
        for i in range(m):
            if table[i][column] > 1e-4 and table[i][-1] / table[i][column] < least:
                pivot, least = i, table[i][-1] / table[i][column]
        if pivot < 0:
            return math.inf
        scale = table[pivot][column]
        table[pivot] = [x / scale for x in table[pivot]]
        for i in range(m + 1):
            if i != pivot:
                factor = table[i][column]
                table[i] = [x - factor * y for x, y in zip(table[i], table[pivot])]  # noqa: B905
    return table[-1][-1]


def _system(rng):
    rows = [[rng.uniform(-1, 1) + (4.0 if i == j else 0.0) for j in range(5)] for i in range(5)]
    return rows, [rng.uniform(-1, 1) for _ in range(5)]


@program("Gaussian elimination with pivots, 5 x 5", _system)
def solve(a, b):
    n = len(b)
    a = [row[:] + [b[i]] for i, row in enumerate(a)]
    for k in range(n):
        p = max(range(k, n), key=lambda i: abs(a[i][k]))
        a[k], a[p] = a[p], a[k]
        for i in range(k + 1, n):
            factor = a[i][k] / a[k][k]
            for j in range(k, n + 1):
                a[i][j] -= factor * a[k][j]
    x = [0.0] * n
    for i in range(n - 1, -1, -1):
        x[i] = (a[i][n] - sum(a[i][j] * x[j] for j in range(i + 1, n))) / a[i][i]
    return x
