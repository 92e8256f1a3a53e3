"""Programs that show in which order Python evaluates: what is read, raised and changed first, at every stage."""

from __future__ import annotations

import pytest

from tests.oracles.python_programs import Refused, check_stages, prepare
from tests.programs.container_programs import PythonProgram

pytestmark = [pytest.mark.promotion("standard")]

INTEGERS = (("a", "int"), ("b", "int"))
LIST = (*INTEGERS, ("xs", "list"))

# The old value is read before the right side raises, and before what that changes.
AUGMENTED_ELEMENT_RAISES_FIRST = """\
def f0(a, b):
    fs = [0] * (a % 3)
    fs[1] += min(fs)
    return fs
"""

AUGMENTED_KEY_RAISES_FIRST = """\
def f0(a, b):
    ys = [1, 2, 3]
    d = {1: 3, 2: 0}
    ys[d[a % 4]] += min([v for v in ys if v > b])
    d[b] += ys[a]
    return ys, d
"""

AUGMENTED_ROW_RAISES_FIRST = """\
def f0(a, b):
    g = [[1, 2], [3], []]
    d = {1: 3}
    g[a % 4][b % 3] += d[a]
    g[a % 4] += [d[b]]
    return g
"""

AUGMENTED_BY_WHAT_CHANGES_IT = """\
def f0(a, b, xs):
    d = {i: i * 3 for i in range(a % 5)}
    e = [1, 2, 3]
    xs[0] += xs.pop()
    xs[a % 3] += f(xs)
    e[xs.pop() % 3] += xs.pop(0)
    d[b % 3] += d.pop(b % 4, 7)
    return xs, d, e

def f(xs):
    xs[0] = 7
    xs.append(3)
    return xs[1]
"""

# The object at the place is found there again, a number or a text is the one of before.
AUGMENTED_BY_A_METHOD_OF_ITS_OBJECT = """\
class M:
    def __init__(self, v):
        self.n, self.t, self.stack, self.rows = v, "a", [v, 1, 2], [[1], [2, v]]

    def pop(self):
        return self.stack.pop()

    def next(self):
        self.n += 2
        self.t += "b"
        return self.n

    def renew(self):
        self.n = 5
        return 1

def f0(a, b):
    m = M(a)
    m.stack += [m.pop()] * 2
    m.rows[0] += [m.pop(), m.next()]
    m.rows[1] += [m.rows[1].pop(), m.rows[0].pop()]
    m.t += "x" * (m.next() % 3)
    m.n += m.next()
    m.n -= m.renew()
    d = {1: [a], 2: [a, b]}
    d[2] += [d[2].pop(0), d[1].pop()]
    rest, rings = {1, 2, 3, a}, [[b, 1], [2, 5]]
    rest -= set(rings[-1])
    rings.append([b])
    rest &= set(rings[0] + [3])
    rings.append([a])
    return m.stack, m.rows, m.n, len(m.t), d[2], sorted(rest), rings
"""

AUGMENTED_THROUGH_A_SECOND_NAME = """\
def f0(a, b, xs):
    ys = xs
    if xs:
        xs[0] += f(ys)
    return xs, ys

def f(ys):
    ys[0] += 100
    ys.append(3)
    return ys[0]
"""

AUGMENTED_WHERE_AN_INDEX_IS_ASSIGNED = """\
def f0(a, b):
    i = 0
    y = 5
    g = [0, 0, 0]

    def f():
        nonlocal i, y
        i += 1
        y += 7
        return i

    g[i] += f()
    g[f()] = y
    y += f()
    return g, i, y
"""

AUGMENTED_ITEM_OF_A_DEFAULTDICT_IS_STORED = """\
from collections import defaultdict

def f0(a, b):
    d = defaultdict(int)
    e = {1: 2}
    d[a] += len(d)
    try:
        d[b] += e[b]
    except KeyError:
        pass
    return dict(d)
"""

AUGMENTED_LIST_RAISES_IN_TRY = """\
def f0(a, b):
    xs = [1] * (a % 3)
    try:
        xs += [1, xs[b % 3], 4]
    except IndexError:
        xs.append(9)
    xs += [xs.pop(0), xs.pop(0)]
    return xs
"""

# The indices of a place were evaluated before the arguments in front of it.
INDEX_OF_AN_ARGUMENT_COMES_IN_ITS_TURN = """\
def f0(a, b, xs):
    g = [[1, 2, 3], [4, 5, 6]]
    i = 0
    if xs:
        a = h(xs.pop(), g[len(xs) % 2])
    h((i := i + 1), g[i])
    h(b, g[h(1, g[0]) - 1])
    return a, g, xs

def h(k, row):
    row.append(k)
    return 1 if k > 3 else 2
"""

# What was changed in a slice was stored in the list that it is a copy from.
ARGUMENT_IS_A_SLICE = """\
def f0(a, b, xs):
    p = h(xs[1:3])
    q = h(xs[::-1])
    h(xs[:])
    return xs, p, q

def h(row):
    row.append(3)
    for i in range(len(row)):
        row[i] += 100
    while len(row) > 2:
        row.pop()
    return row
"""

# The exception was lost as soon as the argument was stored back.
CALL_THAT_CHANGES_A_PART_RAISES_IN_TRY = """\
def f0(a, b):
    g = [[1, 2, 3], [4, 5, 6]]
    c = 0
    try:
        h(g[b % 2], a)
        c += 100
    except IndexError:
        c += 1
    return c, g

def h(row, k):
    row.append(k)
    row[k] += 1
    row.append(k)
"""

# What a method does after it has raised was done all the same.
METHOD_RAISES_IN_TRY = """\
class P:
    def __init__(self, n):
        self.n = n
        self.ys = []

    def bump(self, k):
        self.ys.append(k)
        self.n += [1, 2, 3][k]
        self.ys.append(k + 1)
        return self.n

class Q:
    def __init__(self, p):
        self.p = p

def f0(a, b):
    p, q = P(a), Q(P(b))
    c = d = 0
    try:
        c = p.bump(b) + p.bump(a)
        d = q.p.bump(a)
    except IndexError:
        d = 1
    return c, d, p.n, p.ys, q.p.n, q.p.ys
"""

# A failure that is known while compiling hid those before it.
KNOWN_FAILURE_BEHIND_ANOTHER_IN_TRY = """\
def f0(a, b):
    d = {3: 4, 2: 1}
    try:
        return d[a] + [1, 2][5]
    except KeyError:
        return 1
    except IndexError:
        return 2
"""

# Calls are taken out of an expression, and what stands in front of them was evaluated after them.
OPERANDS_RAISE_IN_TRY = """\
def f0(a, b):
    d = {1: 2, 7: 3}
    xs = [1, 2]
    t = 0
    try:
        t = d[a] + f(b)
    except KeyError:
        t = 100
    except ValueError:
        t = 200
    try:
        t += xs[a] < d[b] < f(a)
        g([xs[a], min([v for v in xs if v > b])], b)
        xs.append(xs[a] + d.pop(b))
    except IndexError:
        t += 1000
    except KeyError:
        t += 2000
    except ValueError:
        t += 3000
    return t, xs, d

def f(x):
    if x > 2:
        raise ValueError("no")
    return x

def g(xs, b):
    return 3 if b > 2 else 4
"""

PROGRAMS = {
    "operands raise in try": PythonProgram(OPERANDS_RAISE_IN_TRY, INTEGERS),
    "augmented element raises first": PythonProgram(AUGMENTED_ELEMENT_RAISES_FIRST, INTEGERS),
    "augmented key raises first": PythonProgram(AUGMENTED_KEY_RAISES_FIRST, INTEGERS),
    "augmented row raises first": PythonProgram(AUGMENTED_ROW_RAISES_FIRST, INTEGERS),
    "augmented by what changes it": PythonProgram(AUGMENTED_BY_WHAT_CHANGES_IT, LIST),
    "augmented by a method of its object": PythonProgram(AUGMENTED_BY_A_METHOD_OF_ITS_OBJECT, INTEGERS),
    "augmented through a second name": PythonProgram(AUGMENTED_THROUGH_A_SECOND_NAME, LIST),
    "augmented where an index is assigned": PythonProgram(AUGMENTED_WHERE_AN_INDEX_IS_ASSIGNED, INTEGERS),
    "augmented item of a defaultdict": PythonProgram(AUGMENTED_ITEM_OF_A_DEFAULTDICT_IS_STORED, INTEGERS),
    "augmented list raises in try": PythonProgram(AUGMENTED_LIST_RAISES_IN_TRY, INTEGERS),
    "index of an argument": PythonProgram(INDEX_OF_AN_ARGUMENT_COMES_IN_ITS_TURN, LIST),
    "argument is a slice": PythonProgram(ARGUMENT_IS_A_SLICE, LIST),
    "call that changes a part raises in try": PythonProgram(CALL_THAT_CHANGES_A_PART_RAISES_IN_TRY, INTEGERS),
    "method raises in try": PythonProgram(METHOD_RAISES_IN_TRY, INTEGERS),
    "known failure behind another in try": PythonProgram(KNOWN_FAILURE_BEHIND_ANOTHER_IN_TRY, INTEGERS),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_all_stages_mean_what_plain_python_means(program: PythonProgram) -> None:
    check_stages(prepare(program, 1187, 6), 16)


# What a method may change was read after it, by whatever name it is read.
READ_BEFORE_A_METHOD = """\
class Inner:
    def __init__(self, v):
        self.v = v

class P:
    def __init__(self, v):
        self.v = v
        self.xs = [v, 1]
        self.inner = Inner(v)

    def up(self, k):
        if k > 1:
            self.v += k
        self.xs[0] += 1
        self.inner.v += 2
        return k

    def eat(self):
        self.v += 1
        return 10

def up(p):
    p.v += 1
    return 2 if p.v > 3 else 3

def deep(p, k):
    inner = p.inner
    inner.v += k
    return k

def both(p, k):
    return p.v * 10 + k

def f0(a, b):
    p = P(a)
    q = p
    ys = [0, 0, 0]
    r0 = p.v + q.up(3) * 100 - p.v, p.v < p.up(b), both(p, p.up(2))
    r1 = p.v - up(p) - p.v
    r2 = p.inner.v + deep(q, 3) * 10 + p.inner.v, p.xs[0] - p.up(2) + p.xs[0]
    ys[b % 3], r3 = p.v, p.up(4)
    k = 0
    while p.v < p.eat() and k < 9:
        k += 1
    p.v += q.up(3)
    ys[p.up(1) % 3] += p.v
    r4 = f"{p.v} {p.up(2)} {p.v}", sum([p.v + p.up(2) + j for j in range(2)])
    return r0, r1, r2, r3, k, r4, ys, p.v < p.up(3) < p.v, p.xs, q.inner.v
"""

# A second object of one name is that object: `z` changes by both parameters.
ONE_OBJECT_TWICE = """\
class Z:
    def __init__(self, v):
        self.v = v

    def m(self, other):
        if self.v > 0:
            self.v += 1
        other.v += 2
        return self.v * 100 + other.v

    def down(self, other, k):
        if k <= 0:
            return self.v
        self.v += 1
        other.v += 10
        return other.down(self, k - 1)

def m(x, y):
    if x.v > 2:
        x.v += 1
    y.v += 2
    return x.v * 100 + y.v

def f0(a, b):
    z, w = Z(a), Z(b)
    r = m(z, z), z.m(z), m(y=z, x=z), z.down(z, 2), m(z, w)
    ws = [w, Z(1)]
    return r, m(ws[0], w), z.v, w.v
"""


def test_what_is_read_before_a_change_is_what_it_was() -> None:
    program = PythonProgram(READ_BEFORE_A_METHOD, INTEGERS)
    check_stages(prepare(program, 1187, 6), 16)


def test_one_object_may_be_given_twice() -> None:
    program = PythonProgram(ONE_OBJECT_TWICE, INTEGERS)
    check_stages(prepare(program, 1187, 6), 16)


ONE_LIST_TWICE = """\
def f0(a, b):
    z = [a]
    h(z, z, 3)
    return z

def h(xs, ys, k):
    if k > 0:
        xs.append(k)
        ys.append(-k)
        h(ys, xs, k - 1)
"""

A_LIST_AND_ITS_OBJECT = """\
class P:
    def __init__(self, v):
        self.xs = [v]

    def add(self, k):
        if k > 0:
            self.xs.append(k)
        return k

def total(xs, k):
    return sum(xs) * 10 + k

def f0(a, b):
    p = P(a)
    return total(p.xs, p.add(b))
"""

A_SECOND_NAME_SHOWS_WHAT_COMES = """\
def f0(a, b, xs):
    ys = xs
    if xs:
        ys += [ys.pop(0), 3]
    return xs
"""

THE_ROW_HAS_MOVED = """\
def f0(a, b):
    g = [[1, 2], [3], [4, 5]]
    g[a % 3] += g.pop(b % 3)
    return g
"""

ANOTHER_LIST_COMES = """\
class M:
    def __init__(self, v):
        self.stack, self.other = [v], None

    def reset(self):
        self.stack = [9]
        return 1

def f0(a, b):
    ms = [M(a), M(b)]
    ms[0].other, ms[1].other = ms[1], ms[a % 2]
    m = ms[1]
    m.stack += [m.other.reset()]
    return m.stack
"""

ROWS_OF_A_SLICE = """\
def f0(a, b):
    g = [[a], [b, 1], [2]]
    h(g[1:])
    return g

def h(rows):
    rows[0].append(4)
    rows.append([])
"""

ROW_OF_A_SLICE = """\
def f0(a, b):
    g = [[a], [b, 1], [2]]
    g[a % 2:][0].append(3)
    return g
"""

ARGUMENT_HAS_MOVED = """\
def f0(a, b):
    g = [[1, 2, 3], [4, 5, 6]]
    h(g[0], g.pop(0))
    return g

def h(row, other):
    row.append(5)
"""

REFUSED = {
    "a list and its object": ("PCB330", PythonProgram(A_LIST_AND_ITS_OBJECT, INTEGERS)),
    "a second name shows what comes": ("PCB330", PythonProgram(A_SECOND_NAME_SHOWS_WHAT_COMES, LIST)),
    "the row has moved": ("PCB330", PythonProgram(THE_ROW_HAS_MOVED, INTEGERS)),
    "rows of a slice": ("PCB330", PythonProgram(ROWS_OF_A_SLICE, INTEGERS)),
    "row of a slice": ("PCB304", PythonProgram(ROW_OF_A_SLICE, INTEGERS)),
}


@pytest.mark.parametrize(("code", "program"), REFUSED.values(), ids=REFUSED)
def test_objects_that_python_changes_elsewhere_are_refused(code: str, program: PythonProgram) -> None:
    with pytest.raises(Refused) as refused:
        check_stages(prepare(program, 1187, 6), 16)
    assert refused.value.code == code


BOXED = {
    "another list comes": PythonProgram(ANOTHER_LIST_COMES, INTEGERS),
    "one list twice": PythonProgram(ONE_LIST_TWICE, INTEGERS),
    "argument has moved": PythonProgram(ARGUMENT_HAS_MOVED, INTEGERS),
}


@pytest.mark.parametrize("program", BOXED.values(), ids=BOXED)
def test_objects_that_python_changes_elsewhere_are_boxed(program: PythonProgram) -> None:
    check_stages(prepare(program, 1187, 6), 16)
