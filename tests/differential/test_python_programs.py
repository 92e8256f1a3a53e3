"""Programs over Python's own data that random programs have found: every stage means what plain Python means."""

from __future__ import annotations

import pytest

from tests.oracles.python_programs import Refused, check_stages, prepare
from tests.programs.container_programs import PythonProgram

pytestmark = [pytest.mark.promotion("standard")]

INTEGERS = (("a", "int"), ("b", "int"))

ELEMENT_OF_A_LIST_IN_WHICH_NOTHING_WAS_STORED = """\
def f0(a, b):
    xs = []
    ys = xs[b:]
    if a:
        ys[6:a] = xs[:2]
    if ys:
        b = ys.pop()
    return b, len(ys)
"""

# A helper that names itself was traced as it is, so that `is` answered for the tracer.
RECURSION_IN_A_TRACED_HELPER = """\
def f0(a, b, r):
    return h0(r, a)

def h0(r, a):
    return h1(2, r, a)

def h1(n, r, a):
    if n == 0:
        return a
    q = 7 if r is None else 5
    return q + h1(n - 1, r, a)
"""

# Its class was lost where no handler of the `try` around it catches it.
ATTRIBUTE_OF_NONE_IN_TRY = """\
def f0(a, b, r):
    try:
        q = r.left
    except ZeroDivisionError:
        q = r
    return 1 if q is None else 2
"""

# The arm that is the loop was cut for a type of `d` that its definitions do not agree on.
LOOP_OVER_WHAT_WAS_STORED_IN_TRY = """\
def f0(a, b):
    d = {}
    try:
        d[a] = a > 2
    except ArithmeticError:
        pass
    t = 7
    for v in d:
        t = 31
    return t
"""

# The elements were those before the loop.
VALUES_CHANGE_WHILE_A_LOOP_GOES_OVER_THEM = """\
def f0(a, b):
    d = {i: i + 1 for i in range(a % 5)}
    e = {0: 1, 1: 2, 2: 3}
    t = 0
    for v in d.values():
        t = t * 3 + v
        if 1 in d:
            d[1] += 10
    for k, v in e.items():
        t = t * 3 + v
        e[b % 3] = k
    for i, v in enumerate(e.values()):
        t = t * 3 + v
        h(e, i)
    return t, d, e

def h(e, i):
    e[2] = i
"""

# The dict was not known to be what the loop goes over.
VALUES_CHANGE_BY_ANOTHER_NAME = """\
def f0(a, b):
    d = {0: 1, 1: a, 2: b}
    e = d
    t = 0
    for v in d.values():
        t = t * 3 + v
        e[2] = t
    boxes = [{0: 1, 1: a}, {0: 2, 1: b}]
    k = 1
    for j, v in boxes[k].items():
        t = t * 3 + v + j
        boxes[k][1] = t
    return t, e, boxes
"""

# Nobody looked at what a helper or a nested function does, nor at keys that go and come again.
SIZE_CHANGES_IN_A_HELPER = """\
def f0(a, b):
    d = {i: i + 1 for i in range(a % 5)}
    for k in d:
        h(d, b)
    return d

def h(d, b):
    d[b] = 7
"""

SIZE_CHANGES_IN_A_NESTED_FUNCTION = """\
def f0(a, b):
    d = {i: i + 1 for i in range(a % 5)}

    def step():
        d[b] = 3

    for k in d:
        step()
    return d
"""

# The class was lost: nothing in a body of `try` was expected to raise it.
SIZE_CHANGES_IN_TRY = """\
def f0(a, b):
    d = {i: i for i in range(a % 5)}
    try:
        for k in d:
            d[b] = 0
    except ZeroDivisionError:
        pass
    return d
"""

# The test of a loop that is unrolled was no longer at its head in the body of a `try`: the compiler failed.
UNROLLED_LOOP_IN_TRY = """\
def f0(a, b):
    g = [[], [1], [2, 3]]
    try:
        for row in g:
            b += row[0]
    except LookupError:
        b += 100
    return b
"""

# Nor was it if the list changes in the loop, as its size is checked before the test.
UNROLLED_LOOP_OVER_WHAT_CHANGES_IN_TRY = """\
def f0(a, b):
    g = [(1, 2), (3,), ()]
    try:
        for row in g:
            if a % 3 == len(row):
                break
            g[0] = (a, 1)
            b += row[0]
    except LookupError:
        b += 100
    return b + g[0][0]
"""

# Only some lanes come to an operation that always raises.
KNOWN_TO_RAISE = """\
def f0(a, b):
    xs = []
    if a > 2:
        return xs[0]
    for k in range(b):
        b += max(xs)
    return b if a else {}[3]
"""

# The caller's variable was assigned what the helper had assigned to its parameter.
PARAMETER_IS_CHANGED_AND_ASSIGNED = """\
class Cell:
    def __init__(self, value, next):
        self.value = value
        self.next = next

def f0(a, b):
    e = Cell(a, None)
    xs = [a]
    h0(b, e)
    h1(b, xs)
    return e.value, xs

def h0(a, e):
    if a > 2:
        e.value = a + 6
    else:
        e = Cell(a, e)
    return e.value

def h1(a, xs):
    xs.append(a)
    if a > 2:
        xs = [a]
    return xs[0]
"""

# The object that the loop goes over was taken to be whatever the body assigns to the variable.
LOOP_OVER_WHAT_ITS_BODY_ASSIGNS = """\
def f0(a, b):
    d = {i: i + 1 for i in range(a % 5)}
    s = {1, 2, a}
    for v in s:
        s = {v, 1}
        s.add(b)
    for k in d:
        d = {}
        d[b] = k
    return d, sorted(s)
"""

# Neither its length nor where it starts tells that a deque has been moved.
DEQUE_MOVES_IN_A_LOOP = """\
from collections import deque

def f0(a, b):
    q = deque([a] * (b % 3))
    t = 0
    for v in q:
        q[0] = 5
        t += v
    for v in q:
        t += v
        if t > 9:
            q.append(1)
            q.pop()
    for v in q:
        t += v
        q.rotate(a)
    for v in q:
        q.append(v)
        break
    return t, list(q)
"""

# An element was one of several objects, of which it was one: the compiler looked at them again and again.
ROWS_OF_A_KNOWN_DICT_CHANGE = """\
def f0(a, b):
    m = {1: [3, 4]}
    if a > 2:
        for row in m.values():
            row.append(b)
    m = {0: [], 1: [b]}
    return [k + sum(v) for k, v in m.items()]
"""

# Python's own dict decides whether it raises where the size is the same again; lanes raise.
KEYS_GO_AND_COME_AGAIN = """\
def f0(a, b):
    c = {1: 2}
    t = 0
    for i1, i2 in c.items():
        t += i1
        if a % 2 in c:
            del c[a % 2]
            c[i2] = 1
    for k in c:
        v = c.pop(k)
        c[k] = v
    return t, c
"""

# What is known to raise has no value; its type was that of the number 0.
KNOWN_TO_RAISE_AT_FIRST = """\
def f0(a, b):
    d = {}
    e = {}
    x = 0.5
    for i in range(a % 4):
        try:
            if min(e):
                b += 100
            e.update({i: a})
        except ValueError:
            e[b] = i
        try:
            if d[0]:
                b += 3
            x, y = d[0], d[1]
            b += y
        except KeyError:
            d[i] = i
    return b, x, d, e
"""

PROGRAMS = {
    "known to raise at first": PythonProgram(KNOWN_TO_RAISE_AT_FIRST, INTEGERS),
    "parameter is changed and assigned": PythonProgram(PARAMETER_IS_CHANGED_AND_ASSIGNED, INTEGERS),
    "loop over what its body assigns": PythonProgram(LOOP_OVER_WHAT_ITS_BODY_ASSIGNS, INTEGERS),
    "deque moves in a loop": PythonProgram(DEQUE_MOVES_IN_A_LOOP, INTEGERS),
    "rows of a known dict change": PythonProgram(ROWS_OF_A_KNOWN_DICT_CHANGE, INTEGERS),
    "keys go and come again": PythonProgram(KEYS_GO_AND_COME_AGAIN, INTEGERS),
    "known to raise": PythonProgram(KNOWN_TO_RAISE, INTEGERS),
    "unrolled loop in try": PythonProgram(UNROLLED_LOOP_IN_TRY, INTEGERS),
    "unrolled loop over what changes in try": PythonProgram(UNROLLED_LOOP_OVER_WHAT_CHANGES_IN_TRY, INTEGERS),
    "values change while a loop goes over them": PythonProgram(VALUES_CHANGE_WHILE_A_LOOP_GOES_OVER_THEM, INTEGERS),
    "values change by another name": PythonProgram(VALUES_CHANGE_BY_ANOTHER_NAME, INTEGERS),
    "size changes in a helper": PythonProgram(SIZE_CHANGES_IN_A_HELPER, INTEGERS),
    "size changes in a nested function": PythonProgram(SIZE_CHANGES_IN_A_NESTED_FUNCTION, INTEGERS),
    "size changes in try": PythonProgram(SIZE_CHANGES_IN_TRY, INTEGERS),
    "loop over what was stored in try": PythonProgram(LOOP_OVER_WHAT_WAS_STORED_IN_TRY, INTEGERS),
    "attribute of None in try": PythonProgram(ATTRIBUTE_OF_NONE_IN_TRY, (*INTEGERS, ("r", "node"))),
    "nothing stored": PythonProgram(ELEMENT_OF_A_LIST_IN_WHICH_NOTHING_WAS_STORED, INTEGERS),
    "recursion in a traced helper": PythonProgram(RECURSION_IN_A_TRACED_HELPER, (*INTEGERS, ("r", "node"))),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_all_stages_mean_what_plain_python_means(program: PythonProgram) -> None:
    check_stages(prepare(program, 1187, 5))


SET_MAY_BE_ANOTHER = """\
def f0(a, b):
    s = {v % 3 for v in range(a % 6)}
    for i in s:
        if i < b:
            s = set()
        s.add(i + 9)
    return sorted(s)
"""

ELEMENTS_OF_A_SET_GO_AND_COME = """\
def f0(a, b):
    s = {0, 1, 2}
    t = 0
    for k in s:
        t = t * 5 + k
        s.discard(b % 3)
        s.add(7)
    return t
"""

REFUSED = {
    "set may be another": ("PCB330", PythonProgram(SET_MAY_BE_ANOTHER, INTEGERS)),
    "elements of a set go and come": ("PCB314", PythonProgram(ELEMENTS_OF_A_SET_GO_AND_COME, INTEGERS)),
}


@pytest.mark.parametrize(("code", "program"), REFUSED.values(), ids=REFUSED)
def test_loops_over_what_is_not_known_are_refused(code: str, program: PythonProgram) -> None:
    with pytest.raises(Refused) as refused:
        check_stages(prepare(program, 1187, 5))
    assert refused.value.code == code
