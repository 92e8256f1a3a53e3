"""Objects whose order `dataclass` has made, in heaps and sorts, and questions whether they are equal."""

from __future__ import annotations

import bisect
import heapq
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

from tests.strangers.rows import LISTS, Row, table

ROWS: list[Row] = []
row = table("ordered", ROWS)
NAN = float("nan")


@dataclass(order=True)
class Item:
    """What waits in the queue of shortest paths."""

    dist: float
    node: int = field(compare=False)


EDGES = (0, 4, 1, 0, 0, 0, 0, 1, 0, 2, 0, 5, 0, 0, 0, 0)


@row((list(EDGES), 0), ([0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0], 1))
def shortest_paths(weights, start):
    dist = [1e9] * 4
    dist[start] = 0.0
    heap = [Item(0.0, start)]
    while heap:
        item = heapq.heappop(heap)
        if item.dist > dist[item.node]:
            continue
        for v in range(4):
            w = weights[4 * item.node + v]
            if w > 0 and item.dist + w < dist[v]:
                dist[v] = item.dist + w
                heapq.heappush(heap, Item(dist[v], v))
    return dist


@dataclass(order=True)
class Event:
    """An event of a simulation; the order is made after the other fields."""

    end: int = field(init=False, repr=False)
    start: int
    length: int
    name: int = field(compare=False, default=0)

    def __post_init__(self):
        self.end = self.start + self.length


@row(*LISTS)
def event_queue(xs):
    queue = []
    for i, x in enumerate(xs):
        heapq.heappush(queue, Event(x, i % 2, i))
    order = []
    while queue:
        event = heapq.heappop(queue)
        order.append(event.name)
        if event.length and len(order) < 8:
            heapq.heappush(queue, Event(event.end, 0, event.name + 10))
    return order


@row(*LISTS)
def events_sorted(xs):
    events = [Event(x, x % 3, i) for i, x in enumerate(xs)]
    back = sorted(events, reverse=True)
    events.sort()
    first = min(back)
    at = bisect.bisect_left(events, Event(3, 0))
    return [e.name for e in events], [e.name for e in back], max(events).name, first.name, at, Event(3, 0, 7) in events


@row((1, 2), (2, 1), (2, 2))
def compared(a, b):
    x, y = Event(a, b, 1), Event(b, a, 2)
    most = max(x, y)
    return x < y, x <= y, x > y, x >= y, x == y, x != y, most.name, (x, a) < (y, b), (a, Item(b, 0)) == (a, Item(b, 1))


@row((1.0, NAN), (NAN, 1.0), (2.0, 1.0))
def without_order(a, b):
    x, y = Item(a, 1), Item(b, 2)
    return x < y, x > y, x == y


@dataclass
class Both:
    """Two objects, which can be equal and have no order."""

    item: Item
    mark: int


class Special(Item):
    """A subclass with the methods that its base has been given."""


@row((1, 2), (2, 1), (2, 2))
def of_classes(a, b):
    x, y = Special(a, 1), Special(b, 2)
    return x == Item(a, 1), x == y, x < y, Both(Item(a, 3), 1) == Both(Item(b, 4), 1), Item(a, 0) == 3


@dataclass(order=True)
class Step:
    """A step of a path, with the one before it."""

    cost: int
    before: Any = field(default=None, compare=False)


@row(*LISTS)
def linked_steps(xs):
    heap, last = [], None
    for x in xs:
        last = Step(x, last)
        heapq.heappush(heap, last)
    best, path = heapq.heappop(heap), []
    same = best == last, best < last, last.before == best, best != last
    while best is not None:
        path.append(best.cost)
        best = best.before
    return path, same, Step(xs[-1]) in [last], [s.cost for s in sorted(heap)]


@row(*LISTS)
def as_parts_of_keys(xs):
    pairs = [(x % 2, Item(x, i)) for i, x in enumerate(xs)]
    byitem = sorted(pairs, key=lambda pair: pair[1], reverse=True)
    greatest = max((x % 2, Item(-x, i)) for i, x in enumerate(xs))
    return [p[1].node for p in sorted(pairs)], [p[1].node for p in byitem], greatest[1].node


@row(*LISTS)
def two_largest(xs):
    heap = []
    for x in xs:
        heapq.heappush(heap, Item(x, -x))
        if len(heap) > 2:
            heapq.heappop(heap)
    swapped = heapq.heappushpop(heap, Item(4, 40))
    return sorted([item.node for item in heap]), swapped.node


@row(*LISTS)
def smallest_and_largest(xs):
    pairs = [(x % 3, k) for k, x in enumerate(xs)]
    worst = heapq.nlargest(2, pairs, key=lambda pair: pair[0])
    counts = Counter(x % 3 for x in xs)
    common = heapq.nlargest(2, counts, key=counts.get)
    return heapq.nsmallest(3, xs), worst, common, heapq.nsmallest(len(xs) // 2, (x * x for x in xs))


@dataclass
class Ledger:
    """Fields whose factories make containers of the lane."""

    tags: Counter = field(default_factory=Counter)
    groups: dict = field(default_factory=lambda: defaultdict(list))
    waiting: deque = field(default_factory=deque)
    seen: set = field(default_factory=set)

    def add(self, x):
        self.tags[x % 2] += 1
        self.groups[x % 3].append(x)
        self.waiting.append(x)
        self.seen.add(x)


@row(*LISTS)
def factories_of_fields(xs):
    ledger, other = Ledger(), Ledger(Counter([1, 1]))
    for x in xs:
        ledger.add(x)
    other.add(3)
    sizes = [len(group) for group in ledger.groups.values()]
    return dict(ledger.tags), sizes, len(ledger.seen), list(ledger.waiting), dict(other.tags), len(other.groups)
