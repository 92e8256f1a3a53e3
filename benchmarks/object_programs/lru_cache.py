"""A cache in order of use: a dict and a doubly linked list with sentinels."""


class Node:
    def __init__(self, key=None, value=None):
        self.key = key
        self.value = value
        self.prev = None
        self.next = None


class LRUCache:
    def __init__(self, capacity):
        self.capacity = capacity
        self.map = {}
        self.head = Node()
        self.tail = Node()
        self.head.next = self.tail
        self.tail.prev = self.head
        self.hits = 0
        self.misses = 0

    def _remove(self, node):
        node.prev.next = node.next
        node.next.prev = node.prev

    def _push_front(self, node):
        node.next = self.head.next
        node.prev = self.head
        self.head.next.prev = node
        self.head.next = node

    def get(self, key):
        if key not in self.map:
            self.misses += 1
            return None
        node = self.map[key]
        self._remove(node)
        self._push_front(node)
        self.hits += 1
        return node.value

    def put(self, key, value):
        if key in self.map:
            self._remove(self.map.pop(key))
        elif len(self.map) >= self.capacity:
            oldest = self.tail.prev
            self._remove(oldest)
            del self.map[oldest.key]
        node = Node(key, value)
        self.map[key] = node
        self._push_front(node)

    def keys(self):
        node = self.head.next
        while node is not self.tail:
            yield node.key
            node = node.next


def expensive(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def solve(requests, capacity):
    cache = LRUCache(capacity)
    total = 0
    for n in requests:
        value = cache.get(n)
        if value is None:
            value = expensive(n)
            cache.put(n, value)
        total += value
    return cache.hits, cache.misses, total, list(cache.keys())


ENTRY = solve
EXAMPLES = [
    ([1, 2, 3, 1, 2, 4, 1, 5, 6, 1], 3),
    ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 2),
    ([7, 7, 7, 7, 7, 7, 7, 7, 7, 7], 1),
    ([5, 9, 5, 9, 5, 9, 5, 9, 5, 9], 2),
    ([5, 9, 5, 9, 5, 9, 5, 9, 5, 9], 1),
    ([27, 3, 27, 12, 8, 27, 3, 12, 8, 3], 4),
    ([1, 2, 3, 4, 1, 2, 3, 4, 1, 2], 3),
    ([1, 2, 3, 4, 1, 2, 3, 4, 1, 2], 8),
]
