"""Texts, tuples of any length as keys, and the order of sets."""

from __future__ import annotations

from collections import defaultdict, deque

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("texts", ROWS)


@row(([0, 2, 7, 0],), ([3, 1],), ([1],))
def reallocation(blocks):
    banks, seen = blocks[:], {}
    cycles = 0
    while tuple(banks) not in seen:
        seen[tuple(banks)] = cycles
        place = banks.index(max(banks))
        amount, banks[place] = banks[place], 0
        for k in range(amount):
            banks[(place + 1 + k) % len(banks)] += 1
        cycles += 1
    return cycles, cycles - seen[tuple(banks)]


@row(("eat tea tan ate nat bat",), ("a",), ("",))
def anagrams(text):
    groups = {}
    for word in text.split():
        key = tuple(sorted(word))
        if key not in groups:
            groups[key] = []
        groups[key].append(word)
    return list(groups.values())


@row(([[0, 1, 0], [1, 1, 0], [0, 0, 1]],), ([[1, 1], [0, 1]],))
def steps_until_seen(grid):
    seen, steps = set(), 0
    while True:
        key = tuple(tuple(r) for r in grid)
        if key in seen:
            return steps
        seen.add(key)
        n = len(grid)
        grid = [[(grid[r][c] + grid[(r + 1) % n][c]) % 2 for c in range(n)] for r in range(n)]
        steps += 1


@row((4,), (3,), (2,))
def bubble_distance(n):
    start = tuple(range(n))
    queue, distance = deque([start]), {start: 0}
    while queue:
        state = queue.popleft()
        for i in range(n - 1):
            other = list(state)
            other[i], other[i + 1] = other[i + 1], other[i]
            if tuple(other) not in distance:
                distance[tuple(other)] = distance[state] + 1
                queue.append(tuple(other))
    return max(distance.values())


@row(("the cat the dog the cat",), ("a b",), ("one",))
def bigrams(text):
    model, pairs = {}, defaultdict(int)
    words = text.split()
    for a, b in zip(words, words[1:]):
        if a not in model:
            model[a] = {}
        model[a][b] = model[a].get(b, 0) + 1
    for i in range(len(words)):
        pairs[tuple(words[i : i + 2])] += 1
    return model, pairs


@row(([1, 2, 3],), ([5],), ([],))
def prefixes(xs):
    seen = {}
    for i in range(len(xs) + 1):
        seen[tuple(xs[:i])] = seen.get(tuple(xs[i:]), 0) + 1
    return len(seen), tuple(xs) in seen, (2, 3) in seen, (len(xs), tuple(xs[:1])) in seen


@row(([1, 2],), ([2, 2],))
def a_key_that_is_missing(xs):
    return {(1, 2): 3}[tuple(xs)]


@row((1234567, "ab"), (-17, "xyz"), (0, ""))
def report(n, name):
    old = "{0:>5}: {1:08d} {0!s}".format(name, n), "%-5s=%6d" % (name, n)  # noqa: UP031, UP032
    return f"{name:^6}|{n:+,}|{n:#x}", old


@row(("a,b\r\n c d ",), ("x",), ("\n",))
def cleaned(text):
    table = str.maketrans({",": " ", "d": None})
    return [line.translate(table).rsplit(None, 1) for line in text.splitlines()]


@row(([13, 3, 5, 9, 21],), ([8, 16, 0],), ([7, 7],))
def ties_in_a_set(xs):
    s = set(xs)
    ordered = sorted(s, key=lambda x: x % 2), sorted({x * 3 for x in xs}, key=lambda x: x % 4)
    more = [1]
    more.extend(s)
    return ordered, [*s], more, max(s, key=lambda x: x % 2), min({x + 8 for x in xs}, key=lambda x: 0)


@row(("banana",), ("abcc",))
def most_frequent_letters(text):
    letters = set(text)
    return max(letters, key=lambda c: (text.count(c), c)), sorted(letters, key=lambda c: (-text.count(c), c))


@row(("hello", "help"), ("b", "abc"), ("", "a"))
def of_two(a, b):
    return max(a, b), sorted([b, a, "he"]), a.startswith(("he", "b")), a < b


@row((2,), (3,))
def board_of_queens(n):
    rows = [["."] * 3 for _ in range(3)]
    for i in range(3):
        rows[i][(i + n) % 3] = "Q"
    return "/".join("".join(line) for line in rows), "/".join(map("".join, rows))


@row((2,), (3,))
def joined_from_any_iterator(n):
    first, d = "a" if n > 2 else "bb", {"x": str(n), "y": "z"}
    words = [first, "c"]
    return (
        ",".join(word.upper() for word in words if word != "c"),
        ",".join(reversed(words)),
        ",".join(d.values()),
        ",".join(f"{k}={v}" for k, v in d.items()),
        "-".join(c for pair in ((first, "c"), ("c", first)) for c in pair),
        "".join(map(str, (n, 2 * n))),
    )
