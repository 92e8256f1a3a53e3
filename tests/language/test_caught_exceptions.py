"""What a handler reads of the exception that it has caught: its text, its arguments, its attributes, its class."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.language.along_helpers import no_twelve
from tests.strangers.rows import as_plain, lane_of

pytestmark = pytest.mark.promotion("standard")


class AppError(Exception):
    code = 1


class Missing(AppError):
    code = 404

    def __init__(self, name, where="here"):
        self.name = name
        self.where = where

    def __str__(self):
        return f"{self.name} not found {self.where}"


class Denied(AppError):
    @property
    def label(self):
        return "denied:" + str(self.args[0])


class Limit(AppError):
    def __init__(self, message, limit):
        super().__init__(f"{message}!", limit)
        self.limit = limit


class Plain(ValueError):
    pass


def act(n):
    if n == 0:
        raise Missing("zero")
    if n == 1:
        raise Missing(f"n{n}", "there")
    if n == 2:
        raise Denied(n * 5)
    if n == 3:
        raise Limit("too many", n + 1)
    if n == 4:
        raise AppError
    if n == 5:
        raise Plain("plain", n)
    if n == 6:
        raise Plain()
    return n * 1.5


def texts(n):
    try:
        return str(act(n))
    except AppError as e:
        return f"{type(e).__name__}: {e} [{e.code}]"
    except ValueError as err:
        return "V" + str(err) + repr(err) + err.__class__.__name__


def attributes(n):
    try:
        act(n)
    except Missing as e:
        return e.name + e.where
    except Denied as e:
        return e.label
    except Limit as e:
        return str(e.limit) + str(e.args[1]) + e.args[0]
    except Exception as e:
        return "other " + e.__class__.__name__
    return "none"


def raised_again(n):
    log = []
    try:
        try:
            act(n)
        except AppError as e:
            log.append(str(e))
            if isinstance(e, (Missing, Denied)):
                raise
            log.append("kept")
    except Missing as e:
        log.append("outer " + str(e))
    except AppError as e:
        log.append("app " + str(e) + str(type(e) is Denied))
    except ValueError:
        log.append("value")
    return log


def raised_again_by_name(n):
    try:
        try:
            act(n)
        except AppError as e:
            try:
                raise Plain("inner")
            except Plain as p:
                s = str(p)
            if n < 3:
                raise e
            return s + str(e)
    except AppError as f:
        return "out " + str(f)
    except Plain as p:
        return "plain " + repr(p)
    return "end"


def other_in_its_place(n):
    try:
        try:
            act(n)
        except (Missing, Limit) as e:
            raise Plain(f"for {e}", n) from e
    except Plain as e:
        return f"{e.args[0]} {e.args[1]}" if str(e) else "empty"
    except Denied:
        return "denied"
    except AppError as e:
        return str(e)
    return "fine"


def in_a_loop(n):
    out = []
    for k in range(n):
        try:
            if k % 3 == 0:
                raise Plain(f"k{k}")
            if k % 3 == 1:
                raise Missing("k", str(k))
            out.append("fine")
        except Plain as e:
            out.append(str(e))
            continue
        except Missing as e:
            out.append(str(e))
        finally:
            out.append("f")
    return out


def descend(n):
    if n == 0:
        raise Plain("bottom", n)
    if n == 5:
        return 7
    if n % 2:
        try:
            return descend(n - 1)
        except ValueError as e:
            raise AppError(f"{n}<{e}") from None
    return descend(n - 1) + 1


def through_recursion(n):
    try:
        return str(descend(n))
    except AppError as e:
        return "A" + str(e)
    except ValueError as e:
        return "V" + str(e)


def formats(n):
    try:
        act(n)
    except Exception as e:
        return "%s %d" % (e, n) + "{} {}".format(n, e) + f"{e!r}" + f"[{e!s:>24}]"  # noqa: UP031, UP032
    return ""


def key(n):
    d = {}
    for k in range(3):
        d[k * 2] = k
    try:
        return d[n] + 0
    except KeyError as e:
        return e.args[0] + 100


def by_class(n):
    try:
        act(n)
    except Exception as e:
        if type(e) == Limit:  # noqa: E721
            return 1
        elif type(e) != Denied and not isinstance(e, ValueError):  # noqa: E721
            return 2
        return 3
    return 0


class Last(AppError):
    def __init__(self, xs):
        super().__init__(xs[-1])


def a_constructor_that_raises(n):
    try:
        raise Last([k for k in range(n % 3)])
    except IndexError:
        return "empty"
    except Last:
        return "last"


def before_the_users_own(n):
    """The body may raise one of Python's own before."""
    xs = [1, 2, 3, 4, 5]
    message = "fine"
    try:
        act(xs[n] + 1)
    except AppError as e:
        message = str(e)
    except IndexError:
        message = "index"
    except Plain as e:
        message = repr(e)
    return message


class Share(AppError):
    def __init__(self, n):
        self.n = n

    def __str__(self):
        return f"S{10 // self.n}"


def a_text_that_raises(n):
    """Python makes the text where it is read."""
    try:
        raise Share(n)
    except Exception as e:
        return type(e).__name__ if n == 0 else str(e)


@dataclass
class Coded(Exception):
    a: int
    b: str = "bb"


def of_a_dataclass(n):
    try:
        raise Coded(n, "x")
    except Coded as e:
        return repr(e) + str(e) + e.b * e.a


def name_of_a_loop(n):
    total = 0
    for e in [1, 2, 3]:
        try:
            if e == n:
                raise AppError(e * 10)
            total += e
        except AppError as e:
            total += len(str(e))
    return total


class Frac:
    def __init__(self, a, b):
        if b == 0:
            raise ZeroDivisionError("zero denominator")
        self.a, self.b = a, b

    def __truediv__(self, other):
        return Frac(self.a * other.b, self.b * other.a)


class Named(Frac):
    def __init__(self, a, name):
        super().__init__(1, a)
        if len(name) > 3:
            raise KeyError(name)
        self.name = name


class Reader:
    def __init__(self, numbers):
        self.numbers, self.at = numbers, 0
        self.advance()

    def advance(self):
        while self.at < len(self.numbers) and self.numbers[self.at] == 0:
            self.at += 1
        if self.numbers[self.at] > 4:
            raise KeyError(f"at {self.at}")
        self.token = self.numbers[self.at]
        self.at += 1


def in_a_constructor(n):
    try:
        found = Frac(n, 3) / Frac(n - 3, n)
        reader = Reader([0, n - 1, 0, 5, 3][n % 3 :])
        reader.advance()
        return f"{found.a}/{found.b} {Named(n - 5, 'abcdef'[:n]).name} {reader.token}"
    except ZeroDivisionError as e:
        return str(e)
    except KeyError as e:
        return f"key {e}"


class Misplaced(SyntaxError):
    def __init__(self, text, place):
        super().__init__(text)
        self.place = place


def of_classes_with_texts_of_their_own(n):
    log = []
    for k in range(n):
        try:
            if k == 0:
                raise NameError(f"unknown name {n}")
            if k == 1:
                raise AttributeError("x", n)
            if k == 2:
                raise ImportError(f"no module {n}")
            if k == 3:
                raise Misplaced(f"bad character at {n}", k)
            raise SyntaxError("x" * n)
        except (SyntaxError, NameError) as e:
            log.append(f"{k}: {e}")
        except (AttributeError, ImportError) as e:
            log.append(str(e))
    return log


class Account:
    def __init__(self, balance):
        self.balance = balance

    def take(self, amount):
        if amount == 4:
            raise AssertionError(f"four of {self.balance}")
        if amount > self.balance:
            raise Limit(f"short by {amount - self.balance}", self.balance)
        self.balance -= amount


def methods(n):
    account = Account(5)
    log = []
    for amount in (n, n + 1, 2 * n):
        try:
            account.take(amount)
        except Limit as e:
            log.append(f"{e.args[0]} of {e.limit}")
        except AssertionError as e:
            log.append(str(e))
    return log


@pytest.mark.parametrize(
    "fn",
    [
        texts,
        attributes,
        raised_again,
        raised_again_by_name,
        other_in_its_place,
        in_a_loop,
        through_recursion,
        formats,
        key,
        by_class,
        methods,
        of_classes_with_texts_of_their_own,
        a_constructor_that_raises,
        before_the_users_own,
        a_text_that_raises,
        of_a_dataclass,
        name_of_a_loop,
        in_a_constructor,
    ],
)
def test_parts_of_what_was_caught_are_those_of_plain_python(fn: Callable[..., Any]) -> None:
    ns = range(8)
    found = pcbatch.batch(fn)(np.array(ns))
    assert [as_plain(lane_of(found, n)) for n in ns] == [as_plain(fn(n)) for n in ns]


def by_python(n):
    xs = [1, 2, 3]
    d = {"a": 1, "it's": 2}
    name = "a" if n < 2 else "zz"
    try:
        if n == 0:
            return str(xs[n + 5])
        if n == 1:
            return str(10 // (n - 1))
        if n == 2:
            return str(d[name])
        if n == 3:
            return str([v for v in xs if v > n][n])
        if n == 4:
            return str(int("4x" if n > 3 else "4"))
        if n == 5:
            return str(float("abc"[: n - 3]))
        if n == 6:
            return str(math.sqrt(-n * 1.0))
        if n == 7:
            return str("abc".index("z" * n))
        if n == 8:
            return str(10 % (n - 8))
        if n == 9:
            return str(1.5 / (n - 9))
        if n == 10:
            return ("abc" * n)[n * 30]
        if n == 11:
            return str(min([v for v in xs if v > n]))
        if n == 13:
            return str(1.5 % (n - 13))
        if n == 14:
            xs.remove(n)
        if n == 15:
            return str(math.log(n - 15))
        no_twelve(n)
        a, b = xs[: n - 13]
        return str(a + b)
    except Exception as e:
        return type(e).__name__ + "|" + str(e)


def test_texts_of_pythons_own_exceptions_are_those_of_plain_python() -> None:
    ns = range(17)
    found = pcbatch.batch(by_python)(np.array(ns))
    assert [lane_of(found, n) for n in ns] == [by_python(n) for n in ns]


def test_a_lane_stops_where_python_makes_a_text_that_it_does_not_know() -> None:
    def index(n):
        try:
            return str([1, 2, 3].index(n))
        except ValueError as e:
            return str(e)

    result = pcbatch.batch(index).run(np.arange(5))
    assert [int(status) for status in result.status] == [7, 0, 0, 0, 7]


def test_the_place_of_a_syntax_error_is_in_its_text() -> None:
    def placed(n):
        try:
            if n > 0:
                raise SyntaxError("bad", ("file", n, 1, "x"))
            raise SyntaxError()
        except SyntaxError as e:
            return str(e)

    result = pcbatch.batch(placed).run(np.arange(2))
    assert [int(status) for status in result.status] == [7, 7]


def test_an_attribute_that_another_class_has_raises_an_attribute_error() -> None:
    def reads(n):
        try:
            act(n)
        except AppError as e:
            return e.limit
        except ValueError:
            return -1
        return 0

    result = pcbatch.batch(reads).run(np.arange(8))
    assert [int(status) != 0 for status in result.status] == [True, True, True, False, True, False, False, False]
    assert int(result.value[3]) == 4


def kept(n):
    errors = []
    try:
        act(n)
    except AppError as e:
        errors.append(e)
    return len(errors)


def method_of_it(n):
    try:
        act(n)
    except AppError as e:
        return e.with_traceback(None).args[0]


def named_anew(n):
    try:
        act(n)
    except AppError as e:
        e = str(e)
        return e
    return ""


@pytest.mark.parametrize("fn", [kept, method_of_it, named_anew])
def test_other_uses_of_the_exception_are_refused(fn: Callable[..., Any]) -> None:
    with pytest.raises(pcbatch.CompileError, match="PCB101"):
        pcbatch.batch(fn)(np.arange(8))


def changed_before_it_is_read(n):
    xs = [1, n]
    try:
        raise AppError(xs)
    except AppError as e:
        xs.append(5)
        return str(e)


def attribute_that_is_changed(n):
    xs = [1, n]
    try:
        raise Missing(xs)
    except Missing as e:
        xs[0] = 77
        return e.name[0]


def property_that_may_raise(n):
    try:
        raise Ratio(n)
    except Ratio as e:
        return -1 if n == 0 else e.ratio


class Ratio(AppError):
    @property
    def ratio(self):
        return 10 // self.args[0]


def name_that_python_deletes(n):
    e = 1
    try:
        if n > 0:
            raise AppError("x")
    except AppError as e:
        pass
    return e


@pytest.mark.parametrize(
    ("fn", "code"),
    [
        (changed_before_it_is_read, "PCB330"),
        (attribute_that_is_changed, "PCB330"),
        (property_that_may_raise, "PCB101"),
        (name_that_python_deletes, "PCB212"),
    ],
)
def test_what_may_be_another_when_it_is_read_is_refused(fn: Callable[..., Any], code: str) -> None:
    with pytest.raises(pcbatch.CompileError, match=code):
        pcbatch.batch(fn)(np.arange(4))


def test_a_subclass_that_goes_on_is_reported_as_itself() -> None:
    def passes(n):
        try:
            act(n)
        except AppError:
            raise
        return n

    with pytest.raises(pcbatch.BatchRuntimeError, match="raised `Limit`"):
        pcbatch.batch(passes)(np.array([3]))
