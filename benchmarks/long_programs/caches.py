"""Replay one trace of keys against LRU, LFU and FIFO caches and compare their hit rates."""

from collections import OrderedDict, defaultdict, deque
from random import Random


class Cache:
    name = "cache"

    def __init__(self, capacity):
        self.capacity = capacity
        self.hits = self.misses = 0
        self.evicted = []

    def access(self, key):
        value = self.get(key)
        if value is not None:
            self.hits += 1
            return value
        self.misses += 1
        value = key * key + 1
        self.put(key, value)
        return value

    def summary(self):
        total = self.hits + self.misses
        rate = self.hits / max(total, 1)
        return f"{self.name}: {self.hits}/{total} = {rate:.1%}"


class LruCache(Cache):
    name = "LRU"

    def __init__(self, capacity):
        super().__init__(capacity)
        self.data = OrderedDict()

    def get(self, key):
        if key not in self.data:
            return None
        self.data.move_to_end(key)
        return self.data[key]

    def put(self, key, value):
        if len(self.data) >= self.capacity:
            old, _ = self.data.popitem(last=False)
            self.evicted.append(old)
        self.data[key] = value


class LfuCache(Cache):
    name = "LFU"

    def __init__(self, capacity):
        super().__init__(capacity)
        self.data = {}
        self.counts = {}
        self.buckets = defaultdict(OrderedDict)
        self.least = 0

    def get(self, key):
        if key not in self.data:
            return None
        count = self.counts[key]
        del self.buckets[count][key]
        if not self.buckets[count]:
            del self.buckets[count]
            if self.least == count:
                self.least += 1
        self.counts[key] = count + 1
        self.buckets[count + 1][key] = None
        return self.data[key]

    def put(self, key, value):
        if len(self.data) >= self.capacity:
            old, _ = self.buckets[self.least].popitem(last=False)
            del self.data[old], self.counts[old]
            self.evicted.append(old)
        self.data[key] = value
        self.counts[key] = self.least = 1
        self.buckets[1][key] = None


class FifoCache(Cache):
    name = "FIFO"

    def __init__(self, capacity):
        super().__init__(capacity)
        self.data = {}
        self.queue = deque()

    def get(self, key):
        return self.data.get(key)

    def put(self, key, value):
        if len(self.queue) == self.capacity:
            old = self.queue.popleft()
            self.data.pop(old)
            self.evicted.append(old)
        self.data[key] = value
        self.queue.append(key)


def solve(trace, capacity):
    caches = [cls(capacity) for cls in (LruCache, LfuCache, FifoCache)]
    total = 0
    for key in trace:
        values = {cache.access(key) for cache in caches}
        assert len(values) == 1
        total += values.pop()
    best = max(caches, key=lambda c: c.hits)
    return [c.summary() for c in caches], best.name, [c.evicted[-3:] for c in caches], total


def examples(n):
    rng = Random(1313)
    make = lambda keys, size: [min(int(rng.expovariate(3.0 / keys)), keys) for _ in range(size)]
    return [(make(rng.randint(8, 40), rng.randint(30, 250)), rng.randint(2, 12)) for _ in range(n)]
