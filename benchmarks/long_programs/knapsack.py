"""0/1 knapsack by best-first branch and bound."""

import heapq
from dataclasses import dataclass, field
from random import Random


@dataclass(frozen=True)
class Item:
    index: int
    value: int
    weight: int

    @property
    def density(self):
        return self.value / self.weight


@dataclass(order=True)
class Node:
    neg_bound: float
    depth: int = field(compare=True)
    value: int = field(compare=False, default=0)
    weight: int = field(compare=False, default=0)
    parent: "Node | None" = field(compare=False, default=None)
    took: bool = field(compare=False, default=False)

    def path(self):
        """Depths of the items that were taken on the way to this node."""
        node, taken = self, []
        while node.parent is not None:
            if node.took:
                taken.append(node.depth - 1)
            node = node.parent
        return taken[::-1]


class Knapsack:
    def __init__(self, items, capacity):
        fitting = [it for it in items if it.weight <= capacity]
        self.items = sorted(fitting, key=lambda it: (-it.density, it.index))
        self.capacity = capacity
        self.expanded = 0

    def bound(self, depth, value, weight):
        """Value of the fractional relaxation."""
        room = self.capacity - weight
        total = float(value)
        for item in self.items[depth:]:
            if item.weight > room:
                return total + item.density * room
            room -= item.weight
            total += item.value
        return total

    def children(self, node):
        item = self.items[node.depth]
        options = [(node.value, node.weight, False)]
        if node.weight + item.weight <= self.capacity:
            options.append((node.value + item.value, node.weight + item.weight, True))
        for value, weight, took in options:
            b = self.bound(node.depth + 1, value, weight)
            yield Node(-b, node.depth + 1, value, weight, node, took)

    def run(self, node_limit):
        root = Node(-self.bound(0, 0, 0), 0)
        best = root
        heap = [root]
        while heap and self.expanded < node_limit:
            node = heapq.heappop(heap)
            if -node.neg_bound <= best.value:
                break
            if node.depth == len(self.items):
                continue
            self.expanded += 1
            for child in self.children(node):
                if child.value > best.value:
                    best = child
                if -child.neg_bound > best.value:
                    heapq.heappush(heap, child)
        return best


def solve(values, weights, capacity):
    items = [Item(i, v, w) for i, (v, w) in enumerate(zip(values, weights))]
    sack = Knapsack(items, capacity)
    best = sack.run(node_limit=150)
    chosen = sorted(sack.items[d].index for d in best.path())
    assert sum(values[i] for i in chosen) == best.value
    return best.value, best.weight, chosen, sack.expanded


def examples(n):
    rng = Random(606)
    out = []
    for _ in range(n):
        k = rng.randint(8, 24)
        weights = [rng.randint(3, 40) for _ in range(k)]
        values = [max(1, w + rng.randint(-8, 14)) for w in weights]
        out.append((values, weights, int(sum(weights) * rng.uniform(0.2, 0.6))))
    return out
