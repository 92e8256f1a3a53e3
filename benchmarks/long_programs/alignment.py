"""Edit distance with the alignment reconstructed from the table."""

from enum import Enum
from itertools import groupby
from random import Random


class Op(Enum):
    KEEP = "="
    CHANGE = "X"
    DELETE = "D"
    INSERT = "I"


def fill(a, b, costs):
    sub, ins, dele = costs
    rows, cols = len(a) + 1, len(b) + 1
    table = [[0] * cols for _ in range(rows)]
    for i in range(1, rows):
        table[i][0] = i * dele
    for j in range(1, cols):
        table[0][j] = j * ins
    for i, x in enumerate(a, start=1):
        above, row = table[i - 1], table[i]
        for j, y in enumerate(b, start=1):
            row[j] = min(
                above[j - 1] + (0 if x == y else sub),
                above[j] + dele,
                row[j - 1] + ins,
            )
    return table


def backtrack(a, b, table, costs):
    sub, ins, dele = costs
    i, j = len(a), len(b)
    ops = []
    while i > 0 or j > 0:
        here = table[i][j]
        if i and j and a[i - 1] == b[j - 1] and here == table[i - 1][j - 1]:
            ops.append(Op.KEEP)
            i, j = i - 1, j - 1
        elif i and j and here == table[i - 1][j - 1] + sub:
            ops.append(Op.CHANGE)
            i, j = i - 1, j - 1
        elif i and here == table[i - 1][j] + dele:
            ops.append(Op.DELETE)
            i -= 1
        else:
            ops.append(Op.INSERT)
            j -= 1
    ops.reverse()
    return ops


def render(a, b, ops):
    top, bottom = [], []
    left, right = iter(a), iter(b)
    for op in ops:
        top.append("-" if op is Op.INSERT else next(left))
        bottom.append("-" if op is Op.DELETE else next(right))
    return "".join(top), "".join(bottom)


def cigar(ops):
    return "".join(f"{len(list(run))}{op.value}" for op, run in groupby(ops))


def apply_ops(a, b, ops):
    """Rebuild b from a, as a check."""
    i = j = 0
    out = ""
    for op in ops:
        match op:
            case Op.KEEP:
                out += a[i]
                i, j = i + 1, j + 1
            case Op.CHANGE:
                out += b[j]
                i, j = i + 1, j + 1
            case Op.DELETE:
                i += 1
            case Op.INSERT:
                out += b[j]
                j += 1
    return out


def solve(a, b, costs):
    table = fill(a, b, costs)
    ops = backtrack(a, b, table, costs)
    assert apply_ops(a, b, ops) == b
    top, bottom = render(a, b, ops)
    return table[-1][-1], cigar(ops), top, bottom


def examples(n):
    rng = Random(1111)
    out = []
    for _ in range(n):
        alphabet = rng.choice(["acgt", "abcdefgh", "kitten sg"])
        a = "".join(rng.choice(alphabet) for _ in range(rng.randint(8, 45)))
        b = []
        for ch in a:
            roll = rng.random()
            if roll < 0.1:
                continue
            b.append(rng.choice(alphabet) if roll < 0.25 else ch)
            if roll > 0.92:
                b.append(rng.choice(alphabet))
        out.append((a, "".join(b), rng.choice([(1, 1, 1), (2, 1, 1), (3, 2, 2)])))
    return out
