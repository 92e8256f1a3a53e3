"""Sorting networks: bitonic and odd-even merge, layered by depth and checked by the 0-1 principle."""

from random import Random


def bitonic(n):
    """Comparators (lo, hi) of Batcher's bitonic sorter; n must be a power of two."""
    k = 2
    while k <= n:
        j = k // 2
        while j:
            for i in range(n):
                partner = i ^ j
                if partner > i:
                    yield (i, partner) if i & k == 0 else (partner, i)
            j //= 2
        k *= 2


def odd_even_merge_sort(lo, n):
    def merge(lo, n, step):
        double = step * 2
        if double < n:
            yield from merge(lo, n, double)
            yield from merge(lo + step, n, double)
            for i in range(lo + step, lo + n - step, double):
                yield i, i + step
        else:
            yield lo, lo + step

    if n > 1:
        half = n // 2
        yield from odd_even_merge_sort(lo, half)
        yield from odd_even_merge_sort(lo + half, half)
        yield from merge(lo, n, 1)


def layers(network, wires):
    """Greedy packing of the comparators into parallel steps."""
    ready = [0] * wires
    result = []
    for a, b in network:
        level = max(ready[a], ready[b])
        if level == len(result):
            result.append([])
        result[level].append((a, b))
        ready[a] = ready[b] = level + 1
    return result


def apply(network, values):
    values = list(values)
    for a, b in network:
        if values[a] > values[b]:
            values[a], values[b] = values[b], values[a]
    return values


def is_sorted(xs):
    return all(x <= y for x, y in zip(xs, xs[1:]))


def failures(network, wires, patterns):
    """The 0-1 inputs, given as bit masks, which the network leaves unsorted."""
    bad = []
    for mask in patterns:
        bits = [mask >> w & 1 for w in range(wires)]
        if not is_sorted(apply(network, bits)):
            bad.append(mask)
    return bad


NETWORKS = {
    "bitonic": lambda n: list(bitonic(n)),
    "odd-even": lambda n: list(odd_even_merge_sort(0, n)),
}


def solve(kind, data, drop, samples):
    wires = 1
    while wires < len(data):
        wires *= 2
    network = NETWORKS[kind](wires)
    big = max(data) + 1
    padded = list(data) + [big] * (wires - len(data))
    result = apply(network, padded)[: len(data)]
    broken = network[:drop] + network[drop + 1 :]
    patterns = [s % (1 << wires) for s in samples]
    depth = len(layers(network, wires))
    return result, len(network), depth, failures(network, wires, patterns), failures(broken, wires, patterns)


def examples(n):
    rng = Random(1010)
    out = []
    for _ in range(n):
        size = rng.choice([5, 8, 11, 14, 16, 16, 25, 32])
        data = [rng.randint(-99, 99) for _ in range(size)]
        samples = [rng.getrandbits(32) for _ in range(rng.randint(4, 12) if size <= 16 else 3)]
        out.append((rng.choice(sorted(NETWORKS)), data, rng.randint(0, 30), samples))
    return out
