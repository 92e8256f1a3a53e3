"""Statements: the compiled function does what the plain function does."""

from __future__ import annotations

import pcbatch
from pcbatch.api.dump import dump
from tests.frontend.compiling import agree


def test_if_elif_else():
    def f(x):
        if x > 4:
            if x > 10:
                return 5
            return 3
        elif x == 0:
            y = 7
        else:
            y = 1
        return y

    agree(f, 0, 1, 5, 60)


def test_while_with_break_continue_else():
    def f(n):
        total, i = 0, 0
        while i < n:
            i += 1
            if i % 3 == 0:
                continue
            if i == 11:
                break
            total += i
        else:
            total = -total
        return total

    agree(f, *range(14))


def test_nested_loops_with_else_break_and_continue():
    def f(n, m):
        out = 0
        for i in range(n):
            for j in range(m):
                if i == j:
                    continue
                if i + j > 6:
                    break
                out = out * 3 + j
            else:
                out += 100
                continue
            out -= 1
            if out > 10_000:
                break
        else:
            out = -out
        return out

    agree(f, *((n, m) for n in range(6) for m in range(7)))


def test_break_in_the_else_of_an_inner_loop_leaves_the_outer_one():
    def f(n):
        count = 0
        for i in range(n):
            while count < 3:
                count += 1
            else:
                if i == 2:
                    break
            count += 1
        return count

    agree(f, *range(6))


def test_range_with_run_time_bounds():
    def f(a, b):
        s = 0
        for i in range(a, b, 3):
            s = s * 2 + i
        for i in range(b, a, -2):
            s = s * 2 - i
        for k in range(b):
            s += k
        return s

    agree(f, (0, 10), (3, 3), (5, 2), (-4, 9))


def test_the_loop_variable_may_be_assigned_and_keeps_its_last_value():
    def f(n):
        i = -1
        trips = 0
        for i in range(n):
            trips += 1
            i = i + 100
        return i, trips

    agree(f, 0, 1, 4)


def test_bounds_are_evaluated_once():
    def f(n):
        s = 0
        step = 2
        for i in range(0, n, step):
            n = 1000
            step = 5
            s += i
        return s, n, step

    agree(f, 0, 7)


def test_local_called_range_is_no_builtin():
    def f(n):
        total = 0
        for i in enumerate_to(n):
            total += i
        return total

    import numpy as np

    def enumerate_to(n):
        return np.arange(n)

    agree(f, 3)


def test_rows_and_enumerate():
    import numpy as np

    xs = np.array([[1, 2], [3, 4], [5, 6]])

    def f(k):
        s = 0
        for row in xs:
            s = s * 10 + int(row[0])
        for i, (a, b) in enumerate(xs):
            if i == k:
                break
            s += int(a) * int(b)
        for j, row in enumerate(xs, k + 2):
            s += j * int(row[1])
        for pair in enumerate(xs):
            s += pair[0] + int(pair[1][0])
        return s

    agree(f, 0, 1, 5)


def test_the_array_is_evaluated_once():
    import numpy as np

    def f(n):
        xs = np.arange(n)
        s = 0
        for x in xs:
            xs = np.zeros(9)
            s += int(x)
        return s, len(xs)

    agree(f, 1, 4)


def test_unpacking():
    def f(a, b):
        a, b = b, a + b
        (c, d), e = (a, b), 3
        [(g, h), i], (j,) = [(c, d), e], (7,)
        _, k = g, h
        x = y = k + i
        (p, q) = z = x, y
        m, m = 1, 2
        (u, v), u = (1, 2), 3
        return a, b, c, d, e, g, h, i, j, k, x, y, p, q, z, m, u, v

    agree(f, (1, 2), (5, -3))


def test_targets_are_assigned_from_left_to_right():
    def f(x):
        x = y = x + 1
        a, b = x = (y, x)
        return x, y, a, b

    agree(f, 3)


def test_augmented_and_annotated_assignment():
    def f(x: int):
        y: int = 2
        z: int
        x += y
        x *= y + 1
        x -= 1
        x //= 2
        x **= 2
        x %= 50
        x |= 1
        x <<= y
        z = x
        return z

    agree(f, 0, 4, 9)


def test_early_and_nested_return():
    def f(n):
        for i in range(n):
            while True:
                if i * i > n:
                    return i
                break
        if n > 100:
            return -1
        else:
            return -2

    agree(f, 0, 1, 7, 50)


def test_constant_conditions_and_unreachable_code():
    def f(n):
        if True:
            n += 1
        if 0:
            n = "never"
        while 1:
            n += 1
            if not False:
                break
        return n
        return n + 100

    agree(f, 3)
    text = dump(pcbatch.batch(f), "cfg", None, 1)
    assert "never" not in text and "100" not in text and text.count("return") == 1


def test_docstring_pass_and_constants_are_ignored():
    def f(n):
        """Doc."""
        ...
        pass
        "text"
        return n

    agree(f, 3)


def test_variable_named_like_compiler_variables():
    def f(n):
        r = n + 1
        t0 = r * 2
        t1 = 5 if t0 > 4 else t0
        return r + t0 + t1

    agree(f, 0, 4)


def test_keyword_only_parameters_and_pytrees():
    def f(state, *, scale):
        a = state["a"] * scale
        while a < 10:
            state = {**state, "a": a + 1}
            a = state["a"]
        return {"b": a, **state}

    from tests.frontend.compiling import run

    assert run(f, {"a": 2, "c": 1}, 3) == f({"a": 2, "c": 1}, scale=3)
