"""What a class has under a name and an object calls: lambdas, static functions, builtins, classes, methods of the class
and the class itself, where each lane may have an object of another class."""

from __future__ import annotations

import heapq
import operator
from typing import Any

import jax
import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import unlike_plain

NUMBERS = range(6)


class Leaf:
    def __init__(self, v):
        self.v = v

    def eval(self):
        return self.v

    def simple(self):
        return self


class Bin:
    def __init__(self, left, right):
        self.left, self.right = left, right

    def eval(self):
        return self.apply(self.left.eval(), self.right.eval())

    def simple(self):
        left, right = self.left.simple(), self.right.simple()
        if isinstance(left, Leaf) and left.v == 0:
            return right
        return type(self)(left, right)

    def __str__(self):
        return f"{type(self).__name__}({self.left.eval()} {self.symbol} {self.right.eval()})"


class Plus(Bin):
    symbol = "+"
    apply = staticmethod(lambda a, b: a + b)


class Times(Bin):
    symbol = "*"
    apply = staticmethod(operator.mul)


class Most(Bin):
    symbol = "^"
    apply = max


class Steps(Bin):
    symbol = "#"

    @staticmethod
    def apply(a, b):
        while a < b:
            a += 3
        return a


def tree(n):
    if n == 0:
        return Leaf(n)
    cls = n % 4
    if cls == 0:
        return Plus(tree(n - 1), Leaf(n))
    if cls == 1:
        return Times(tree(n - 1), Leaf(n + 1))
    return Most(Leaf(n), tree(n - 1)) if cls == 2 else Steps(tree(n - 1), Leaf(n * 2))


def evaluated(n):
    found = tree(n)
    return found.eval(), found.simple().eval()


def shown(n):
    node = Plus(Leaf(n), Leaf(2)) if n % 2 else Times(Leaf(n), Leaf(3))
    return str(node), node.symbol, node.apply(n, 4)


class Shape:
    sides = 0

    def __init__(self, r):
        self.r = r

    area = lambda self: 0

    @classmethod
    def corners(cls, more):
        return cls.sides + more

    def grown(self, k):
        return self.__class__(self.r + k)


def doubled(self, k=1):
    return self.r * 2 + k


def halved(self, k=1):
    if self.r > 3:
        return self.r // 2
    return k


class Square(Shape):
    sides = 4
    area = lambda self: self.r * self.r
    turned = doubled


class Triangle(Shape):
    sides = 3
    area = lambda self: self.r * self.r // 2 if self.r > 1 else 7
    turned = halved

    @classmethod
    def corners(cls, more):
        return cls.sides * more


class Flag(Triangle):
    sides = 5
    turned = staticmethod(lambda k=5: k)


def assigned(n):
    shapes = [Square(n), Triangle(n + 1), Flag(2)]
    total = 0
    for k in range(n):
        total += shapes[k % 3].area() + shapes[k % 3].turned()
    shape = shapes[(n + 1) % 3]
    return total, shape.turned(k=n), shape.turned(3)


def of_the_class(n):
    shapes = [Square(n), Triangle(n), Flag(n)]
    return shapes[n % 3].corners(n), [Shape(n), Square(n)][n % 2].corners(n), Flag.corners(n)


def of_its_class(n):
    shape = Square(n) if n % 2 else Triangle(n)
    for k in range(n):
        shape = shape.grown(k)
    other = type(shape)(n + 1)
    return shape.area(), other.area(), type(other).__name__, other.__class__.sides, shape.__class__ is Square


class Chosen:
    op = max

    def run(self, a, b):
        return self.op(a, b)


class Least(Chosen):
    op = min


class Given(Chosen):
    def __init__(self, op):
        self.op = op


def hidden_by_fields(n):
    a = Chosen() if n % 2 else Least()
    given = Given(lambda a, b: a + b)
    return a.run(n, 3), a.op(3, n), given.run(n, 3), given.op(n, 3)


class Adder:
    @staticmethod
    def put(xs, v):
        xs.append(v)


class Doubler(Adder):
    @staticmethod
    def put(xs, v):
        if v > 2:
            xs.append(v)
        xs.append(2 * v)


class Heap:
    push, pop = staticmethod(heapq.heappush), staticmethod(heapq.heappop)

    def __init__(self):
        self.items = []

    def add(self, x):
        self.push(self.items, x)

    def take(self):
        return self.pop(self.items)


def changed_arguments(n):
    adder, xs, heap = Adder() if n % 2 else Doubler(), [], Heap()
    for k in range(n):
        adder.put(xs, k)
        heap.add(k * 7 % 5)
    return xs, [heap.take() for _ in range(n)]


class Maker:
    node = Leaf

    def made(self, v):
        return self.node(v).eval()


class Signed:
    def __init__(self, v):
        if v > 2:
            self.v = v * 10
        else:
            self.v = -v

    def eval(self):
        return self.v + 1


class OfSigned(Maker):
    node = Signed


def classes_as_attributes(n):
    maker = Maker() if n % 2 else OfSigned()
    return maker.made(n)


class Hero:
    """A class whose method asks for a function of a table, and does nothing else that needs it to be compiled along."""

    def __init__(self, hp):
        self.hp = hp
        self.verbs = {"go": self.go, "wait": self.wait}

    def go(self, where):
        self.hp += where
        return self.hp

    def wait(self, where):
        return self.hp * 2

    def obey(self, verb, where):
        return self.verbs[verb](where)


def tables(n):
    hero = Hero(n)
    return [hero.obey("wait" if k % 2 else "go", k) for k in range(n)]


class Pet:
    def __init__(self, name):
        self.name = name

    def noise(self):
        return f"{self.name} growls"


class Dragon(Pet):
    def noise(self):
        return super().noise().replace("growls", "ROARS") + "!"


class Room:
    def __init__(self):
        self.pet = None

    def heard(self, k):
        noise = self.pet.noise() if self.pet else "quiet"
        return f"{noise} {k}"


def told_in_a_try(n):
    room, log, told = Room(), [], {0: "zero", 2: "two"}
    for k in range(n):
        room.pet = Dragon("d") if k % 3 == 1 else Pet("p") if k % 3 == 2 else None
        try:
            log.append(room.heard(k) + told[k])
        except KeyError as missing:
            log.append(f"no {missing.args[0]}")
    return log


@pytest.mark.parametrize(
    "function",
    [
        *(evaluated, shown, assigned, of_the_class, of_its_class, hidden_by_fields, changed_arguments),
        *(classes_as_attributes, tables, told_in_a_try),
    ],
    ids=lambda function: function.__name__,
)
def test_functions_of_classes_are_those_of_the_object(function: Any) -> None:
    assert unlike_plain(function, NUMBERS) == []


class Tag:
    number = 1

    @classmethod
    def own(cls):
        return cls.number

    def asked(self):
        return self.own()


class Two(Tag):
    number = 2

    def asked(self):
        return super().own() + 10


class Three(Two):
    number = 3


def test_a_method_of_the_class_behind_is_refused_where_lanes_differ_in_the_class() -> None:
    def behind(n):
        tag = Two() if n % 2 else Three()
        return tag.asked()

    with pytest.raises(pcbatch.CompileError, match="method of the class, and that is another one in other lanes"):
        pcbatch.batch(behind)(np.arange(2))
    assert unlike_plain(lambda n: Two().asked() + n, NUMBERS) == []
    assert unlike_plain(lambda n: (Tag() if n % 2 else Three()).own(), NUMBERS) == []


def lengths_of_parts(n):
    log = []
    for k in range(n):
        first, _, rest = f"go {'x' * k}".partition(" ")
        log.append(rest or first)
    return "\n".join(log)


def test_lengths_of_texts_with_64_bit_types() -> None:
    with jax.enable_x64(True):
        assert unlike_plain(lengths_of_parts, NUMBERS) == []
