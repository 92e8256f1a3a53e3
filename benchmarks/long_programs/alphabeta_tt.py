"""Kalah-like sowing game: alpha-beta with a transposition table."""
from typing import NamedTuple

EXACT, LOWER, UPPER = "exact", "lower", "upper"
INF = 10**9


class Position(NamedTuple):
    pits: tuple      # own pits first, then those of the opponent
    stores: tuple    # (own, other)


class Entry(NamedTuple):
    depth: int
    value: int
    flag: str
    move: int


def legal(pos):
    half = len(pos.pits) // 2
    return [i for i in range(half) if pos.pits[i]]


def play(pos, i):
    """Sow the stones; a last stone into an empty own pit captures the pit opposite.
    Returns the position as seen by the other player."""
    pits = list(pos.pits)
    own, other = pos.stores
    n = len(pits)
    half = n // 2
    stones, pits[i] = pits[i], 0
    j = i
    while stones:
        j = (j + 1) % n
        if j == half and stones:
            own += 1
            stones -= 1
            if not stones:
                break
        pits[j] += 1
        stones -= 1
        if not stones and j < half and pits[j] == 1:
            opposite = n - 1 - j
            own += pits[opposite]
            pits[opposite] = 0
    return Position(tuple(pits[half:] + pits[:half]), (other, own))


def evaluate(pos):
    half = len(pos.pits) // 2
    mine, yours = sum(pos.pits[:half]), sum(pos.pits[half:])
    return 4 * (pos.stores[0] - pos.stores[1]) + mine - yours


class Searcher:
    def __init__(self):
        self.table = {}
        self.nodes = 0
        self.hits = 0
        self.cutoffs = 0

    def search(self, pos, depth, alpha, beta):
        self.nodes += 1
        original = alpha
        entry = self.table.get(pos)
        if entry is not None and entry.depth >= depth:
            self.hits += 1
            if entry.flag == EXACT:
                return entry.value
            if entry.flag == LOWER:
                alpha = max(alpha, entry.value)
            else:
                beta = min(beta, entry.value)
            if alpha >= beta:
                return entry.value
        moves = legal(pos)
        if depth == 0 or not moves:
            return evaluate(pos)
        if entry is not None and entry.move in moves:
            moves.remove(entry.move)
            moves.insert(0, entry.move)
        best, best_move = -INF, -1
        for m in moves:
            value = -self.search(play(pos, m), depth - 1, -beta, -alpha)
            if value > best:
                best, best_move = value, m
            alpha = max(alpha, best)
            if alpha >= beta:
                self.cutoffs += 1
                break
        flag = UPPER if best <= original else LOWER if best >= beta else EXACT
        self.table[pos] = Entry(depth, best, flag, best_move)
        return best


def solve(pits, depth):
    pos = Position(tuple(pits), (0, 0))
    s = Searcher()
    values = [s.search(pos, d, -INF, INF) for d in range(1, depth + 1)]
    line = []
    while pos in s.table and len(line) < depth:
        move = s.table[pos].move
        line.append(move)
        pos = play(pos, move)
    return values, line, s.nodes, s.hits, s.cutoffs, len(s.table)


def examples(n):
    import random
    r = random.Random(909)
    out = []
    for _ in range(n):
        half = r.randint(3, 4)
        out.append(([r.choice([0, 1, 1, 2, 3, 4]) for _ in range(2 * half)], r.randint(2, 4)))
    return out
