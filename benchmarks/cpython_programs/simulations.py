"""Simulations with objects, events and growing lists; random numbers from a generator written by hand."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

from benchmarks.cpython_programs.program import Program, entering

PROGRAMS: list[Program] = []
program = entering(PROGRAMS)


@dataclass
class Station:
    mean: int
    queue: list = field(default_factory=list)
    busy: bool = False
    served: int = 0


@program("queueing network, stations as objects", lambda rng: (rng.randint(1, 10**4), rng.randint(6, 20)))
def network(seed, customers):
    stations = [Station(4), Station(7), Station(5)]
    events = []
    arrival = 0
    for k in range(customers):
        seed = (seed * 75 + 74) % 65537
        arrival += seed % 8
        heapq.heappush(events, (arrival, 0, k, 0))
    clock = total = 0
    while events:
        clock, kind, customer, place = heapq.heappop(events)
        station = stations[place]
        if kind == 0:
            station.queue.append(customer)
        else:
            station.busy = False
            station.served += 1
            if place == 2:
                total += clock
            else:
                heapq.heappush(events, (clock, 0, customer, place + 1))
        if not station.busy and station.queue:
            station.busy = True
            waiting = station.queue.pop(0)
            seed = (seed * 75 + 74) % 65537
            heapq.heappush(events, (clock + 1 + seed % station.mean, 1, waiting, place))
    return clock, total, [station.served for station in stations]


class Random:
    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 75 + 74) % 65537
        return self.state / 65537.0


@program("epidemic, lists of people that grow", lambda rng: (rng.randint(1, 10**4), rng.uniform(0.05, 0.3)))
def epidemic(seed, chance):
    random = Random(seed)
    infected = [0]
    healthy = list(range(1, 24))
    recovered = []
    days = 0
    while infected and days < 12:
        days += 1
        new = []
        for _ in infected:
            still = []
            for other in healthy:
                if random.next() < chance * 0.5:
                    new.append(other)
                else:
                    still.append(other)
            healthy = still
        stays = []
        for person in infected:
            if random.next() < 0.4:
                recovered.append(person)
            else:
                stays.append(person)
        infected = stays + new
    return days, len(healthy), len(recovered)


@program("Gillespie's algorithm, a dict of counts", lambda rng: (rng.randint(1, 10**4), rng.randint(5, 15)))
def gillespie(seed, prey):
    counts = {"prey": prey, "predator": 6}
    random = Random(seed)
    time = 0.0
    events = 0
    while time < 2.0 and events < 60:
        rates = [1.0 * counts["prey"], 0.08 * counts["prey"] * counts["predator"], 0.8 * counts["predator"]]
        total = sum(rates)
        if total == 0:
            break
        time += -math.log(1.0 - random.next()) / total
        chosen = random.next() * total
        if chosen < rates[0]:
            counts["prey"] += 1
        elif chosen < rates[0] + rates[1]:
            counts["prey"] -= 1
            counts["predator"] += 1
        else:
            counts["predator"] -= 1
        events += 1
    return counts["prey"], counts["predator"], events


def _requests(rng):
    return [min(int(rng.expovariate(0.2)), 30) for _ in range(rng.randint(40, 120))], rng.randint(3, 8)


@program("LRU cache, a dict in order of use", _requests)
def lru(requests, capacity):
    cache = {}
    hits = 0
    for page in requests:
        if page in cache:
            del cache[page]
            cache[page] = True
            hits += 1
        else:
            if len(cache) == capacity:
                del cache[list(cache)[0]]
            cache[page] = True
    return hits, list(cache)


def _code(rng):
    body = []
    for _ in range(rng.randint(2, 5)):
        body += rng.choice(
            (
                [("load", 1), ("push", rng.randint(1, 9)), ("add", 0), ("store", 1)],
                [("load", 1), ("load", 0), ("mul", 0), ("push", 997), ("mod", 0), ("store", 1)],
                [("load", 1), ("push", 3), ("sub", 0), ("store", 1)],
            )
        )
    code = [*body, ("load", 0), ("push", 1), ("sub", 0), ("store", 0), ("load", 0), ("jump", 0), ("halt", 0)]
    names = ("push", "load", "store", "add", "sub", "mul", "mod", "jump", "halt")
    return [names.index(name) for name, _ in code], [operand for _, operand in code], rng.randint(3, 10)


@program("bytecode machine", _code)
def machine(operations, operands, rounds):
    memory = [rounds, 1, 0, 0]
    stack = []
    pc = steps = 0
    while operations[pc] != 8 and steps < 1000:
        operation, operand = operations[pc], operands[pc]
        pc += 1
        steps += 1
        if operation == 0:
            stack.append(operand)
        elif operation == 1:
            stack.append(memory[operand])
        elif operation == 2:
            memory[operand] = stack.pop()
        elif operation == 7:
            if stack.pop() != 0:
                pc = operand
        else:
            right = stack.pop()
            left = stack.pop()
            if operation == 3:
                stack.append(left + right)
            elif operation == 4:
                stack.append(left - right)
            elif operation == 5:
                stack.append(left * right)
            else:
                stack.append(left % right)
    return memory[1], steps
