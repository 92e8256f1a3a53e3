"""Gillespie's direct method for small chemical networks written as text."""

import math
from collections import Counter, namedtuple
from random import Random

Reaction = namedtuple("Reaction", "rate inputs outputs")

MASK = (1 << 32) - 1


class Lcg:
    """A 32-bit linear congruential generator, with the output scrambled."""

    def __init__(self, seed):
        self.state = (seed ^ 0x9E3779B9) & MASK

    def random(self):
        self.state = (self.state * 1664525 + 1013904223) & MASK
        x = self.state ^ (self.state >> 15)
        # shifted by half a step so that the result is never 0
        return (x + 0.5) / (MASK + 1)


def parse_side(text):
    """'2 A + B' -> {'A': 2, 'B': 1}; '0' means nothing."""
    side = Counter()
    for term in text.split("+"):
        words = term.split()
        if words == ["0"]:
            continue
        if len(words) == 2:
            side[words[1]] += int(words[0])
        else:
            side[words[0]] += 1
    return dict(side)


def parse(line):
    equation, _, rate = line.partition("@")
    left, arrow, right = equation.partition("->")
    if not arrow or not rate:
        raise ValueError(f"bad reaction: {line}")
    return Reaction(float(rate), parse_side(left), parse_side(right))


def propensity(reaction, state):
    a = reaction.rate
    for species, k in reaction.inputs.items():
        a *= math.comb(state.get(species, 0), k)
    return a


def fire(reaction, state):
    for species, k in reaction.inputs.items():
        state[species] -= k
    for species, k in reaction.outputs.items():
        state[species] = state.get(species, 0) + k


def simulate(reactions, state, t_end, max_steps, rng):
    """Yield (time, index of the reaction) for each event; `state` is updated in place."""
    t = 0.0
    for _ in range(max_steps):
        props = [propensity(r, state) for r in reactions]
        total = sum(props)
        if total <= 0:
            return
        t -= math.log(rng.random()) / total
        if t > t_end:
            return
        threshold = rng.random() * total
        chosen = len(props) - 1
        for i, p in enumerate(props):
            threshold -= p
            if threshold < 0:
                chosen = i
                break
        fire(reactions[chosen], state)
        yield t, chosen


def solve(lines, initial, t_end, max_steps, seed):
    reactions = [parse(line) for line in lines]
    state = dict(initial)
    fired = Counter()
    peak = dict(state)
    last = 0.0
    for t, i in simulate(reactions, state, t_end, max_steps, Lcg(seed)):
        fired[i] += 1
        last = t
        for species, count in state.items():
            if count > peak.get(species, 0):
                peak[species] = count
    summary = [(s, state[s], peak.get(s, 0)) for s in sorted(state)]
    return summary, [fired[i] for i in range(len(reactions))], round(last, 9)


def examples(n):
    rng = Random(505)
    networks = [
        (["X -> 2 X @ 1.0", "X + Y -> 2 Y @ 0.01", "Y -> 0 @ 1.0"], ["X", "Y"]),
        (["A + B -> C @ 0.02", "C -> A + B @ 0.5"], ["A", "B"]),
        (["2 M -> D @ 0.01", "D -> 2 M @ 0.3", "0 -> M @ 4.0", "M -> 0 @ 0.1"], ["M"]),
        (["S + I -> 2 I @ 0.02", "I -> R @ 0.4"], ["S", "I"]),
        (["E + S -> ES @ 0.01", "ES -> E + S @ 0.2", "ES -> E + P @ 0.6"], ["E", "S"]),
    ]
    out = []
    for _ in range(n):
        lines, species = rng.choice(networks)
        initial = {s: rng.randint(10, 80) for s in species}
        out.append((list(lines), initial, rng.uniform(1, 10), rng.randint(50, 220), rng.getrandbits(31)))
    return out
