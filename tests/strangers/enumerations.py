"""Members of enumerations in variables, lists, dicts, sets, objects and results."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, IntEnum

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("enumerations", ROWS)


class Colour(Enum):
    """Plain members."""

    RED = 1
    GREEN = 2
    BLUE = 3


class Level(IntEnum):
    """Members that are numbers."""

    LOW = 0
    MID = 1
    HIGH = 5


class Mode(str, Enum):  # noqa: UP042
    """Members that are texts."""

    ON = "on"
    OFF = "off"


class Heading(Enum):
    """Members with attributes and methods."""

    NORTH = (0, 1)
    EAST = (1, 0)
    SOUTH = (0, -1)
    WEST = (-1, 0)

    def __init__(self, dx, dy):
        self.dx, self.dy = dx, dy

    def right(self):
        around = list(Heading)
        return around[(around.index(self) + 1) % 4]

    def moved(self, x, y):
        if self is Heading.NORTH:
            return x, y + 1
        return x + self.dx, y + self.dy

    @property
    def is_vertical(self):
        return self.dx == 0


PRICE = {Colour.RED: 10, Colour.GREEN: 20, Colour.BLUE: 30}


@row((5, 1), (7, 2))
def assigned_in_lists(n, k):
    cells = [Colour.RED] * n
    cells[k] = Colour.GREEN
    cells[k + 1] = Colour.BLUE
    cells.append(cells[k])
    grid = [[Colour.RED for _ in range(3)] for _ in range(3)]
    grid[k][1] = Colour.BLUE
    greens = sum(1 for c in cells if c is Colour.GREEN) + cells.count(Colour.BLUE)
    rows = [[c.value for c in line] for line in grid]
    return greens, cells.index(Colour.GREEN), Colour.BLUE in cells, cells == [Colour.RED] * n, rows


@row((1,), (2,), (5,))
def keys_and_members(n):
    counts = {Colour.RED: 0, Colour.BLUE: 0}
    seen, turn = set(), {Colour.RED: Colour.GREEN, Colour.GREEN: Colour.BLUE, Colour.BLUE: Colour.RED}
    c, price = Colour.RED, 0
    for i in range(n):
        counts[Colour.RED if i % 3 == 0 else Colour.BLUE] += i
        price += PRICE[c]
        c = turn[c]
        seen.add((c, i % 2))
    pairs = [(key.name, value) for key, value in counts.items()]
    return (
        pairs,
        price,
        c.value,
        len(seen),
        (Colour.RED, 0) in seen,
        c in {Colour.RED, Colour.BLUE},
        c in (1, Colour.RED),
    )


@row((1,), (2,), (7,))
def by_value(n):
    try:
        found = Colour(n)
    except ValueError:
        return "none", False, 0
    maybe = found if n > 1 else None
    return found.name, maybe is Colour.GREEN, 1 if maybe is None or maybe != Colour.GREEN else 2


@row((0,), (1,), (2,))
def numbers_and_texts(n):
    level = Level.HIGH if n else Level(n)
    mode = Mode.ON if n > 1 else Mode.OFF
    same = level is Level.HIGH, Level(n % 2) is Level.LOW
    modes = [mode] * (n + 1)
    modes.append(Mode.ON)
    return (
        level * 2,
        level == 5,
        level > Level.MID,
        [7, 8][level % 2],
        mode is Mode.ON,
        mode == "on",
        modes[-1] is Mode.ON,
        same,
    )


@row(([0, 1, 1, 0],), ([1, 0, 0, 1, 1, 0],))
def robot(steps):
    heading, x, y, path = Heading.NORTH, 0, 0, []
    for step in steps:
        if step:
            heading = heading.right()
        else:
            x, y = heading.moved(x, y)
        path.append((x, y, heading))
    return [(a, b, h.dx) for a, b, h in path], heading.is_vertical, heading.value


@dataclass
class Token:
    """A token of a text."""

    kind: Colour
    size: int = 0


@row((5,), (2,))
def in_objects_and_queues(n):
    queue, tokens, state = deque([Colour.RED]), [], Colour.RED
    while queue and len(tokens) < n:
        c = queue.popleft()
        tokens.append(Token(c, len(queue)))
        if c is Colour.RED:
            queue.append(Colour.GREEN)
            queue.append(Colour.BLUE)
        elif c == Colour.GREEN:
            queue.append(Colour.RED)
    for k, token in enumerate(tokens):
        if k % 2:
            token.kind = Colour.BLUE
    match tokens[-1].kind:
        case Colour.RED:
            state = Colour.GREEN
        case Colour.GREEN | Colour.BLUE:
            state = Colour.BLUE
    return [token.kind.value for token in tokens], state.name, min(tokens, key=lambda t: t.kind.value).size


@row((1,), (3,))
def given_back(n):
    pair = Colour.RED, [Colour.BLUE, Colour(n)]
    return Colour(n), [Colour.GREEN] * n, {Colour(n): n}, {n: Colour.RED}, None if n > 1 else Colour.BLUE, pair


class Odd(Enum):
    """Members with an equality of their own."""

    A = 1
    B = 2

    def __eq__(self, other):
        return True

    __hash__ = Enum.__hash__


@row((0,), (1,))
def an_equality_of_its_own(n):
    found = Odd.A if n else Odd.B
    return found is Odd.A, found.value


@row((["red", "blue"],), (["green"],), (["blue", "pink", "red"],))
def by_name(words):
    found, missing = [], 0
    for word in words:
        try:
            found.append(Colour[word.upper()])
        except KeyError as e:
            missing += len(str(e))
    return [colour.value for colour in found], missing, found[-1], Level["HIGH" if len(words) > 1 else "LOW"] + 1
