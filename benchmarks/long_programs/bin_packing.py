"""Bin packing heuristics compared: next fit, first fit, best fit and worst fit, online or by decreasing size."""

from abc import ABC, abstractmethod
from random import Random


class Overflow(Exception):
    """The item doesn't fit into the bin."""


class Bin:
    def __init__(self, capacity):
        self.capacity = capacity
        self.items = []
        self.used = 0

    @property
    def free(self):
        return self.capacity - self.used

    def put(self, size):
        if size > self.free:
            raise Overflow(f"{size} > {self.free}")
        self.items.append(size)
        self.used += size

    def __len__(self):
        return len(self.items)

    def __repr__(self):
        return f"[{' '.join(map(str, self.items))}|{self.free}]"


class Packer(ABC):
    def __init__(self, capacity):
        self.capacity = capacity
        self.bins = []
        self.rejected = []

    @abstractmethod
    def choose(self, size):
        """A bin for the item, or None to open a new one."""

    def add(self, size):
        target = self.choose(size)
        if target is None:
            target = Bin(self.capacity)
            target.put(size)
            self.bins.append(target)
        else:
            target.put(size)

    def pack(self, sizes):
        for size in sizes:
            try:
                self.add(size)
            except Overflow:
                self.rejected.append(size)
        return self

    def waste(self):
        return sum(b.free for b in self.bins)


class NextFit(Packer):
    def choose(self, size):
        if self.bins and self.bins[-1].free >= size:
            return self.bins[-1]
        return None


class FirstFit(Packer):
    def choose(self, size):
        return next((b for b in self.bins if b.free >= size), None)


class BestFit(Packer):
    def choose(self, size):
        fitting = [b for b in self.bins if b.free >= size]
        return min(fitting, key=lambda b: b.free, default=None)


class WorstFit(Packer):
    def choose(self, size):
        roomy = max(self.bins, key=lambda b: b.free, default=None)
        return roomy if roomy is not None and roomy.free >= size else None


def solve(sizes, capacity):
    falling = sorted(sizes, reverse=True)
    lower_bound = -(-sum(s for s in sizes if s <= capacity) // capacity)
    report = []
    best = None
    for cls in (NextFit, FirstFit, BestFit, WorstFit):
        for label, order in (("", sizes), (" decreasing", falling)):
            packer = cls(capacity).pack(order)
            report.append((cls.__name__ + label, len(packer.bins), packer.waste(), len(packer.rejected)))
            if best is None or len(packer.bins) < len(best.bins):
                best = packer
    fullest = max(best.bins, key=lambda b: (b.used, len(b)))
    return lower_bound, report, repr(fullest)


def examples(n):
    rng = Random(1212)
    out = []
    for _ in range(n):
        capacity = rng.choice([50, 100, 150])
        count = rng.randint(10, 32)
        sizes = [rng.randint(5, capacity * 2 // 3) for _ in range(count)]
        if rng.random() < 0.2:
            sizes[rng.randrange(count)] = capacity + rng.randint(1, 20)
        out.append((sizes, capacity))
    return out
