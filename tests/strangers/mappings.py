"""Dicts and sets that lanes fill."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("mappings", ROWS)


@row((19,), (7,), (4,), (2,))
def is_happy_number(number: int) -> bool:
    if number <= 0:
        raise ValueError("number must be positive")
    seen = set()
    while number != 1 and number not in seen:
        seen.add(number)
        number = sum(int(digit) ** 2 for digit in str(number))
    return number == 1


@row((24,), (7,), (36,))
def divisors_sorted(n):
    divs = set()
    for i in range(1, int(n**0.5) + 1):
        if n % i == 0:
            divs.add(i)
            divs.add(n // i)
    return sorted(divs)


@row(([2, 7, 11, 15], 9), ([3, 2, 4, 8], 6), ([1, 2, 3, 4], 100))
def two_sum(nums: list[int], target: int) -> list[int]:
    chk_map = {}
    for index, val in enumerate(nums):
        compl = target - val
        if compl in chk_map:
            return [chk_map[compl], index]
        chk_map[val] = index
    return []


@row(([1, 2, 2, 3],), ([4, 4, 4, 1],))
def modes(xs):
    counts = Counter(xs)
    best = max(counts.values())
    return sorted([k for k, v in counts.items() if v == best])


@row(([1, 2, 1, 3],), ([4, 4, 4, 4],))
def distinct_in_order(xs):
    seen = set()
    out = []
    for x in xs:
        if x not in seen:
            seen.add(x)
            out.append(x)
    return out


@row(([3, 1, 3, 2],), ([5],), ([1, 1, 1],))
def frequencies(xs):
    counts = {}
    for x in xs:
        if x in counts:
            counts[x] += 1
        else:
            counts[x] = 1
    return counts


@row(([3, 1, 3, 2],), ([5],), ([1, 1, 1],))
def most_frequent(xs):
    counts = defaultdict(int)
    for x in xs:
        counts[x] += 1
    best, times = None, 0
    for value, number in counts.items():
        if number > times:
            best, times = value, number
    return best


@row(([1, 2, 3, 4], [3, 4, 5]), ([7], [8]))
def common_elements(a, b):
    return sorted(set(a) & set(b)), sorted(set(a) | set(b)), sorted(set(a) - set(b)), len(set(a) ^ set(b))


@row(([1, 2, 3, 1],), ([1, 2, 3],), ([4, 4],))
def has_a_duplicate(nums):
    return len(nums) != len(set(nums))


@row(([100, 4, 200, 1, 3, 2],), ([0, 1],), ([9],))
def longest_consecutive(nums):
    pool = set(nums)
    best = 0
    for n in pool:
        if n - 1 not in pool:
            length = 1
            while n + length in pool:
                length += 1
            best = max(best, length)
    return best


@row(([1, 2, 3], 3), ([1, -1, 0], 0))
def subarrays_with_sum(nums, k):
    seen = {0: 1}
    total = count = 0
    for n in nums:
        total += n
        count += seen.get(total - k, 0)
        seen[total] = seen.get(total, 0) + 1
    return count


@row((6,), (10,), (2,))
def memo_stairs(n):
    memo = {0: 1, 1: 1}

    def ways(k):
        if k not in memo:
            memo[k] = ways(k - 1) + ways(k - 2)
        return memo[k]

    return ways(n)


@row(([2, 4, 3, 7, 6],), ([1, 1],))
def grouped_by_parity(xs):
    groups = {0: [], 1: []}
    for x in xs:
        groups[x % 2].append(x)
    return groups[0], groups[1]


@row(([1, 2, 3],), ([4],))
def squares_table(xs):
    table = {x: x * x for x in xs}
    return sum(table.values()), sorted(table), {k: v for k, v in table.items() if v > 3}


@row((19, 100), (7, 100), (2, 5))
def steps_to_a_cycle(n, modulus):
    seen = {}
    step = 0
    while n not in seen:
        seen[n] = step
        n = (n * n + 1) % modulus
        step += 1
    return seen[n], step - seen[n]


@row(([2, 3, 2, 5],), ([1],))
def counter_of_remainders(xs):
    c = Counter(x % 3 for x in xs)
    return c[0], c[1], c[2]


@row(([3, 1, 3, 2],), ([2, 2, 5],))
def subset_sums(xs):
    sums = {0}
    for x in xs:
        sums |= {s + x for s in sums}
    return 7 in sums, len(sums), max(sums)


@row(([3, 1, 3, 2],), ([2, 2, 5],))
def first_key_and_counts(xs):
    counts = dict.fromkeys(xs, 0)
    for x in xs:
        counts[x] += 1
    first = next(iter(counts))
    return first, counts[first], list(counts.values())


@row(([3, 1, 3, 2], 5), ([2, 2, 5], 6))
def pair_with_sum(xs, target):
    values = set(xs) | {0}
    return any(target - x in values for x in values), sorted(2 * x for x in values), sum(x for x in values)


@row((3,), (4,))
def over_a_known_set(n):
    total = 0
    for base in {3, 5, 10}:
        total += n * base
    return total


@row(([2, 3, 4, 5, 3, 4, 2],), ([1, 1],))
def modes_by_count(values):
    result = [values.count(value) for value in values]
    most = max(result)
    return sorted({values[i] for i, count in enumerate(result) if count == most})


class Branch:
    def __init__(self):
        self.children = {}
        self.count = 0


@row((0,), (1,), (7,), (4,))
def stores_in_defaults(n):
    d = {}
    for i in range(n):
        d.setdefault(i % 3, {})[i % 4] = d.setdefault(i % 3, {}).get(i % 4, 0) + i
        del d.setdefault(9, {1: 2})[1]
        d.pop(9)
    return sum(sum(inner.values()) * (k + 1) for k, inner in d.items())


@row((0,), (1,), (7,), (4,))
def chains_of_defaults(n):
    d = {}
    for i in range(n):
        d.setdefault(i % 3, {}).setdefault(i % 2, []).append(i)
        d.setdefault(i % 3, {}).setdefault(i % 2, [])[0] += 1
    return [[k, j, sum(d[k][j])] for k in d for j in d[k]]


@row((0,), (1,), (7,), (4,))
def a_name_for_a_default(n):
    d = {}
    k = 0
    for i in range(n):
        pair = d.setdefault((k := k + 1) % 3, [0, 0])
        pair[0] += i
        pair[1] += 1
    return [d[j][0] * 100 + d[j][1] for j in d]


@row((0,), (1,), (7,), (4,))
def defaults_that_are_objects(n):
    root = Branch()
    for i in range(n):
        node = root
        for ch in [i % 3, i % 2]:
            node = node.children.setdefault(ch, Branch())
            node.count += 1
    return [root.children[k].count for k in root.children]


@row((0,), (1,), (7,), (4,))
def defaults_in_a_try(n):
    d = {}
    s = 0
    for i in range(n):
        try:
            s += 10 // d.setdefault(i % 3, [0]).pop()
        except (ZeroDivisionError, IndexError):
            d.setdefault(i % 3, []).append(i + 1)
    return s * 100 + sum(len(d[k]) for k in d)


@row(([5, 6, 7], 1), ([], 0), ([1, 4, 1], 4))
def ordered_by_first_sight(xs, k):
    firsts = OrderedDict((x, i) for i, x in enumerate(xs))
    thirds = OrderedDict.fromkeys(x % 3 for x in xs)
    seen = {*xs, k}
    return OrderedDict.fromkeys(xs, k), list(firsts.items()), list(thirds), len(seen), seen == {k}, [*zip(xs, xs)]


@row(("hello",), ("",), ("abca",))
def letters_once(s):
    return "".join(dict.fromkeys(s)), "".join(OrderedDict.fromkeys(s))
