"""Agent-based SIR epidemic in a square town; agents wander and infect each other."""
from collections import defaultdict
from dataclasses import dataclass
from enum import Enum


class Health(Enum):
    SUSCEPTIBLE = "S"
    INFECTED = "I"
    RECOVERED = "R"


def make_random(seed):
    state = seed & 0x7FFFFFFF

    def rand():
        nonlocal state
        state = (1103515245 * state + 12345) & 0x7FFFFFFF
        return state / 2147483648.0

    return rand


@dataclass
class Agent:
    name: int
    x: int
    y: int
    health: Health = Health.SUSCEPTIBLE
    days_left: int = 0
    victims: list = None

    def infect(self, days):
        self.health = Health.INFECTED
        self.days_left = days
        self.victims = []

    def wander(self, rand, size):
        self.x = (self.x + int(rand() * 3) - 1) % size
        self.y = (self.y + int(rand() * 3) - 1) % size

    def tick(self):
        if self.health is Health.INFECTED:
            self.days_left -= 1
            if self.days_left <= 0:
                self.health = Health.RECOVERED


class Town:
    def __init__(self, size, people, seed, beta, duration):
        self.rand = make_random(seed)
        self.size = size
        self.beta = beta
        self.duration = duration
        self.agents = [Agent(i, int(self.rand() * size), int(self.rand() * size)) for i in range(people)]
        self.agents[0].infect(duration)
        self.curve = []
        self.chain = []

    def count(self, health):
        return sum(1 for a in self.agents if a.health is health)

    def day(self, today):
        places = defaultdict(list)
        for a in self.agents:
            a.wander(self.rand, self.size)
            places[a.x, a.y].append(a)
        for crowd in places.values():
            sick = [a for a in crowd if a.health is Health.INFECTED]
            if not sick:
                continue
            for a in crowd:
                if a.health is Health.SUSCEPTIBLE:
                    for s in sick:
                        if self.rand() < self.beta:
                            a.infect(self.duration + int(self.rand() * 3))
                            s.victims.append(a.name)
                            self.chain.append((today, s.name, a.name))
                            break
        for a in self.agents:
            a.tick()
        self.curve.append(self.count(Health.INFECTED))
        return self.curve[-1] > 0


def solve(size, people, seed, beta, duration, max_days):
    town = Town(size, people, seed, beta, duration)
    days = 0
    while days < max_days and town.day(days):
        days += 1
    spread = [len(a.victims) for a in town.agents if a.victims is not None]
    r0 = sum(spread) / len(spread)
    worst = max(spread)
    summary = " ".join(f"{h.value}={town.count(h)}" for h in Health)
    return summary, days, r0, worst, town.curve, town.chain[-3:]


def examples(n):
    import random
    r = random.Random(808)
    return [(r.randint(2, 7), r.randint(10, 36), r.randrange(1, 1 << 30), round(r.uniform(0.1, 0.8), 2),
             r.randint(2, 6), r.randint(5, 20)) for _ in range(n)]
