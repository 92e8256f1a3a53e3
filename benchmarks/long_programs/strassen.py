"""Strassen's matrix multiplication over plain lists of lists."""

from random import Random

LEAF = 3


def add(a, b):
    return [[x + y for x, y in zip(r, s)] for r, s in zip(a, b)]


def sub(a, b):
    return [[x - y for x, y in zip(r, s)] for r, s in zip(a, b)]


def naive(a, b):
    columns = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, col)) for col in columns] for row in a]


def quarters(m):
    h = len(m) // 2
    top, bottom = m[:h], m[h:]
    return (
        [r[:h] for r in top],
        [r[h:] for r in top],
        [r[:h] for r in bottom],
        [r[h:] for r in bottom],
    )


def join(c11, c12, c21, c22):
    return [l + r for l, r in zip(c11, c12)] + [l + r for l, r in zip(c21, c22)]


def strassen(a, b):
    if len(a) <= LEAF:
        return naive(a, b)
    a11, a12, a21, a22 = quarters(a)
    b11, b12, b21, b22 = quarters(b)
    m1 = strassen(add(a11, a22), add(b11, b22))
    m2 = strassen(add(a21, a22), b11)
    m3 = strassen(a11, sub(b12, b22))
    m4 = strassen(a22, sub(b21, b11))
    m5 = strassen(add(a11, a12), b22)
    m6 = strassen(sub(a21, a11), add(b11, b12))
    m7 = strassen(sub(a12, a22), add(b21, b22))
    return join(
        add(sub(add(m1, m4), m5), m7),
        add(m3, m5),
        add(m2, m4),
        add(add(sub(m1, m2), m3), m6),
    )


def padded_size(n):
    size = LEAF
    while size < n:
        size *= 2
    return size


def pad(m, size):
    rows = [row + [0] * (size - len(row)) for row in m]
    return rows + [[0] * size for _ in range(size - len(rows))]


def multiply(a, b):
    n, k, m = len(a), len(b), len(b[0])
    if any(len(row) != k for row in a):
        raise ValueError("shapes do not match")
    size = padded_size(max(n, k, m))
    c = strassen(pad(a, size), pad(b, size))
    return [row[:m] for row in c[:n]]


def solve(a, b):
    note = "ok"
    try:
        c = multiply(a, b)
    except ValueError as exc:
        note = str(exc)
        c = multiply(a, [list(col) for col in zip(*a)])
    trace = sum(c[i][i] for i in range(min(len(c), len(c[0]))))
    checksum = 0
    for row in c:
        for x in row:
            checksum = (checksum * 31 + x) % 1_000_000_007
    return c, trace, f"{note} {checksum:08x}"


def examples(n):
    rng = Random(404)

    def matrix(rows, cols):
        return [[rng.randint(-9, 9) for _ in range(cols)] for _ in range(rows)]

    out = []
    for i in range(n):
        r, k, c = (rng.randint(3, 6) if rng.random() < 0.85 else rng.randint(9, 12) for _ in range(3))
        bad = 1 if i % 20 == 19 else 0
        out.append((matrix(r, k), matrix(k + bad, c)))
    return out
