"""Discrete event simulation of a bank: several counters, impatient customers."""
import heapq
import math
from collections import deque
from dataclasses import dataclass, field

ARRIVE, FINISH, RENEGE = range(3)


class Rng:
    """Small linear congruential generator (31 bits)."""

    def __init__(self, seed):
        self.state = (seed * 2654435 + 12345) & 0x7FFFFFFF

    def uniform(self):
        self.state = (self.state * 1103515245 + 12345) & 0x7FFFFFFF
        return (self.state >> 7) / (1 << 24)

    def expovariate(self, rate):
        return -math.log(1.0 - self.uniform()) / rate


@dataclass
class Customer:
    ident: int
    arrival: float
    patience: float
    start: float = -1.0
    gone: bool = False

    @property
    def waited(self):
        return self.start - self.arrival if self.start >= 0 else self.patience


@dataclass(order=True)
class Event:
    time: float
    seq: int
    kind: int = field(compare=False)
    customer: Customer = field(compare=False)
    counter: int = field(compare=False, default=-1)


class Bank:
    def __init__(self, rates, rng):
        self.rates, self.rng = rates, rng
        self.free = sorted(range(len(rates)), key=lambda i: -rates[i])
        self.queue, self.events = deque(), []
        self.seq = 0
        self.now, self.busy = 0.0, [0.0] * len(rates)
        self.served, self.lost = [], []
        self.longest = 0

    def schedule(self, delay, kind, customer, counter=-1):
        heapq.heappush(self.events, Event(self.now + delay, self.seq, kind, customer, counter))
        self.seq += 1

    def begin_service(self, customer):
        counter = self.free.pop(0)
        customer.start = self.now
        duration = self.rng.expovariate(self.rates[counter])
        self.busy[counter] += duration
        self.schedule(duration, FINISH, customer, counter)

    def on_arrive(self, ev):
        if self.free:
            self.begin_service(ev.customer)
        else:
            self.queue.append(ev.customer)
            self.longest = max(self.longest, len(self.queue))
            self.schedule(ev.customer.patience, RENEGE, ev.customer)

    def on_finish(self, ev):
        self.served.append(ev.customer)
        self.free.append(ev.counter)
        while self.queue:
            nxt = self.queue.popleft()
            if not nxt.gone:
                self.begin_service(nxt)
                break

    def on_renege(self, ev):
        if ev.customer.start < 0:
            ev.customer.gone = True
            self.lost.append(ev.customer)

    def run(self):
        handlers = {ARRIVE: self.on_arrive, FINISH: self.on_finish, RENEGE: self.on_renege}
        while self.events:
            ev = heapq.heappop(self.events)
            self.now = ev.time
            handlers[ev.kind](ev)


def solve(seed, customers, arrival_rate, rates):
    rng = Rng(seed)
    bank = Bank(rates, rng)
    t = 0.0
    for i in range(customers):
        t += rng.expovariate(arrival_rate)
        bank.schedule(t, ARRIVE, Customer(i, t, 1.0 + 4.0 * rng.uniform()))
    bank.run()
    waits = [c.waited for c in bank.served]
    mean_wait = sum(waits) / len(waits) if waits else 0.0
    use = [b / bank.now for b in bank.busy]
    return len(bank.served), len(bank.lost), bank.longest, mean_wait, max(use), bank.now


def examples(n):
    import random
    r = random.Random(101)
    out = []
    for _ in range(n):
        k = r.randint(1, 4)
        rates = [round(r.uniform(0.4, 1.5), 3) for _ in range(k)]
        out.append((r.randrange(1 << 30), r.randint(15, 100), round(sum(rates) * r.uniform(0.7, 1.3), 3), rates))
    return out
