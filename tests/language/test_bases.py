"""Methods of base classes by `super()`, and properties that are set, where they branch on values of the lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.promotion("standard")


class Animal:
    def __init__(self, name, age):
        self.name = name
        self.age = age
        self.noise = 0

    def speak(self, k):
        return self.age * 2 if self.age > k else k

    def cost(self):
        return self.age + 1

    @property
    def size(self):
        return self.age + 3


class Dog(Animal):
    def __init__(self, name, age, tricks):
        super().__init__(name, age)
        if tricks > 3:
            self.noise = 7
        self.tricks = tricks

    def speak(self, k):
        base = super().speak(k)
        return base + self.tricks if base > 10 else base * 3

    def cost(self):
        return super().cost() * 2 + self.noise

    @property
    def size(self):
        return super().size * 2


class Puppy(Dog):
    def speak(self, k):
        if self.age < 2:
            return 1
        return super().speak(k) + 1


class Loud:
    def speak(self, k):
        return 40


class LoudDog(Loud, Dog):
    def __init__(self, age):
        super().__init__("loud", age, 1)

    def speak(self, k):
        return super().speak(k) + 1 if self.age > 3 else 0


def of_one_class(n):
    dog = Dog("rex", n, n + 1)
    return dog.speak(3) * 100 + dog.cost() + dog.size


def of_several_classes(n):
    """Records of the lane, whose classes differ, with texts in them."""
    animals = [Animal("cat", n), Dog("rex", n, n + 1), Puppy("bit", n - 2, 2)]
    total, loudest = 0, animals[0]
    for animal in animals:
        total = total * 30 + animal.speak(3) + animal.cost() + animal.size
        if animal.speak(2) > loudest.speak(2):
            loudest = animal
    return total, loudest.name


def by_the_order_of_classes(n):
    return LoudDog(n).speak(2) * 100 + LoudDog(n).cost()


class Account:
    def __init__(self, balance):
        self.balance = balance
        self.refused = 0

    @property
    def balance(self):
        return self._balance

    @balance.setter
    def balance(self, value):
        if value < 0:
            raise ValueError("negative")
        self._balance = value

    def pay(self, amount):
        if amount > 3:
            self.balance = self.balance - amount
        else:
            self.balance -= 1


class Square:
    def __init__(self, width):
        self.width = width

    @property
    def area(self):
        return self.width**2

    @area.setter
    def area(self, value):
        self.width = value // 2


class Link:
    def __init__(self, value, following=None):
        self.value = value
        self.following = following

    @property
    def value(self):
        return self._value

    @value.setter
    def value(self, new):
        self._value = new % 10 if new > 20 else new


def set_or_refused(n):
    account = Account(n)
    try:
        account.balance -= 4
    except ValueError:
        account.refused += 1
    account.balance += 2
    account.pay(account.balance // 2)
    return account.balance * 10 + account.refused


def set_without_branches(n):
    square = Square(n)
    square.area = square.area + n
    square.area += 4
    return square.width


def set_in_records(n):
    head = None
    for i in range(n):
        head = Link(i * 7, head)
    total = 0
    while head is not None:
        head.value = head.value + 1
        total = total * 7 + head.value
        head = head.following
    return total


class Logged:
    def __init__(self, name, first):
        self.name = name
        self.log = [first]
        self.found = {}

    @property
    def last(self):
        if self.log[-1] > 4:
            return self.log[-1] * 2
        return self.log[-1]


class Twice(Logged):
    def __init__(self, name, first):
        super().__init__(name + "'s twin", first)
        self.log.append(first)
        self.found[first] = 1

    @property
    def last(self):
        return super().last + 100 if len(self.log) > 2 else super().last


def lists_in_fields_of_two_classes(n):
    """What was appended to a list that may be that of one class or of another was lost."""
    logged = Twice("b", n) if n % 2 else Logged("a", 4)
    logged.log.append(7)
    if n > 3:
        logged.log[0] += 5
        logged.found[n] = logged.found.get(5, 0) + 2
    return logged.log, len(logged.found), logged.name


def properties_by_super(n):
    logged = Twice("b", n)
    if n > 3:
        logged.log.append(n)
    return logged.last


PROGRAMS = [
    lists_in_fields_of_two_classes,
    properties_by_super,
    of_one_class,
    of_several_classes,
    by_the_order_of_classes,
    set_or_refused,
    set_without_branches,
    set_in_records,
]


def of_lane(found: Any, lane: int) -> Any:
    return tuple(part.tolist()[lane] for part in found) if isinstance(found, tuple) else found.tolist()[lane]


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_the_results_are_those_of_python(fn: Callable[[int], Any]) -> None:
    values = np.array([1, 4, 5, 8])
    found = pcbatch.batch(fn)(values)
    assert [of_lane(found, k) for k in range(len(values))] == [fn(n) for n in values.tolist()]


def by_another_name(n):
    logged = Twice("b", n) if n % 2 else Logged("a", 4)
    log = logged.log
    log.append(7)
    return logged.log


def test_a_list_of_a_field_changes_by_another_name() -> None:
    assert pcbatch.batch(by_another_name)(np.array([1, 4])).tolist() == [by_another_name(1), by_another_name(4)]


class Other(Animal):
    pass


class Both(Other, Loud):
    pass


class Asking(Animal):
    def speak(self, k):
        return super().speak(k) if self.age > k else 0


class AskingBoth(Asking, Loud):
    pass


def depends_on_the_class(n):
    animal = Asking("a", n) if n > 3 else AskingBoth("b", n)
    return animal.speak(2)


def test_super_whose_meaning_depends_on_the_object() -> None:
    """The class behind `Asking` is `Animal` for both, as each has it before `Loud`."""
    values = np.array([1, 4])
    assert pcbatch.batch(depends_on_the_class)(values).tolist() == [depends_on_the_class(n) for n in (1, 4)]


class Shelf:
    def __init__(self, n):
        self.items = [n, 2 * n]

    def add(self, x):
        self.items.append(x)

    def pop(self):
        return self.items.pop()


class Doubled(Shelf):
    def __init__(self, n):
        super().__init__(n)
        if n > 2:
            super().add(5)

    def add(self, x):
        if x > 3:
            Shelf.add(self, 2 * x)
        else:
            super().add(x)

    def pop(self):
        return super().pop() + 100 if len(self.items) > 2 else Shelf.pop(self)


def methods_of_the_base_as_functions(n):
    shelf = Doubled(n)
    shelf.add(n)
    shelf.add(n + 2)
    return shelf.pop(), Shelf.pop(shelf), sum(shelf.items)


def test_methods_with_names_of_containers_in_branches() -> None:
    values = np.array([1, 2, 3])
    found = np.stack(pcbatch.batch(methods_of_the_base_as_functions)(values), 1)
    assert found.tolist() == [list(methods_of_the_base_as_functions(n)) for n in (1, 2, 3)]
