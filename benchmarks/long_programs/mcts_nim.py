"""Monte Carlo tree search for Nim (normal play, at most k from one heap)."""
from __future__ import annotations

import math


class Lcg:
    __slots__ = ("s",)

    def __init__(self, seed: int):
        self.s = seed & 0x7FFFFFFF

    def below(self, n: int) -> int:
        self.s = (self.s * 1103515245 + 12345) & 0x7FFFFFFF
        return (self.s >> 9) % n

    def choice(self, seq):
        return seq[self.below(len(seq))]


class NimState:
    def __init__(self, heaps: tuple[int, ...], limit: int, player: int = 0):
        self.heaps = heaps
        self.limit = limit
        self.player = player

    def moves(self) -> list[tuple[int, int]]:
        return [(i, k) for i, h in enumerate(self.heaps) for k in range(1, min(h, self.limit) + 1)]

    def play(self, move: tuple[int, int]) -> NimState:
        i, k = move
        heaps = self.heaps[:i] + (self.heaps[i] - k,) + self.heaps[i + 1:]
        return NimState(heaps, self.limit, 1 - self.player)

    def over(self) -> bool:
        return not any(self.heaps)

    def winner(self) -> int:
        # the player to move cannot move, hence has lost
        return 1 - self.player


class Node:
    def __init__(self, state: NimState, parent: Node | None = None, move=None):
        self.state = state
        self.parent = parent
        self.move = move
        self.children: list[Node] = []
        self.untried = state.moves()
        self.visits = 0
        self.wins = 0.0

    def ucb(self, c: float) -> float:
        return self.wins / self.visits + c * math.sqrt(math.log(self.parent.visits) / self.visits)

    def select_child(self, c: float) -> Node:
        return max(self.children, key=lambda ch: ch.ucb(c))

    def expand(self, rng: Lcg) -> Node:
        move = self.untried.pop(rng.below(len(self.untried)))
        child = Node(self.state.play(move), self, move)
        self.children.append(child)
        return child

    def update(self, winner: int):
        self.visits += 1
        if winner != self.state.player:
            self.wins += 1

    def depth(self) -> int:
        return 1 + max((c.depth() for c in self.children), default=0)


def rollout(state: NimState, rng: Lcg) -> int:
    while not state.over():
        state = state.play(rng.choice(state.moves()))
    return state.winner()


def search(root_state: NimState, iterations: int, rng: Lcg, c: float = 1.4) -> Node:
    root = Node(root_state)
    for _ in range(iterations):
        node = root
        while not node.untried and node.children:
            node = node.select_child(c)
        if node.untried:
            node = node.expand(rng)
        winner = rollout(node.state, rng)
        while node is not None:
            node.update(winner)
            node = node.parent
    return root


def solve(heaps, limit, iterations, seed):
    root = search(NimState(tuple(heaps), limit), iterations, Lcg(seed))
    if not root.children:
        return (-1, 0, 0, 0.0, 1)
    best = max(root.children, key=lambda ch: (ch.visits, ch.wins))
    heap, take = best.move
    return heap, take, best.visits, best.wins / best.visits, root.depth()


def examples(n):
    import random
    r = random.Random(303)
    return [([r.randint(2, 4) for _ in range(r.randint(1, 3))], r.randint(2, 4),
             r.randint(8, 36), r.randrange(1, 1 << 30)) for _ in range(n)]
