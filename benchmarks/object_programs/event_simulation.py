"""A bank: customers, and events in a heap by their own order."""

import heapq
from collections import deque
from enum import Enum


class EventKind(Enum):
    ARRIVE = "arrive"
    FINISH = "finish"
    GIVE_UP = "give_up"


class Event:
    def __init__(self, time, kind, customer):
        self.time = time
        self.kind = kind
        self.customer = customer

    def __lt__(self, other):
        if self.time != other.time:
            return self.time < other.time
        return self.customer.ident < other.customer.ident


class Customer:
    def __init__(self, ident, arrival, service):
        self.ident = ident
        self.arrival = arrival
        self.service = service
        self.started = None
        self.left = False


class Teller:
    def __init__(self, name):
        self.name = name
        self.serving = None
        self.busy_time = self.served = 0


class Bank:
    def __init__(self, tellers, patience):
        self.tellers = [Teller(f"T{i}") for i in range(tellers)]
        self.patience = patience
        self.line = deque()
        self.events = []
        self.now = self.longest = 0

    def schedule(self, delay, kind, customer):
        heapq.heappush(self.events, Event(self.now + delay, kind, customer))

    def assign(self):
        for teller in self.tellers:
            if teller.serving is None and self.line:
                c = self.line.popleft()
                c.started = self.now
                teller.serving = c
                teller.busy_time += c.service
                self.schedule(c.service, EventKind.FINISH, c)

    def handle(self, event):
        c = event.customer
        if event.kind is EventKind.ARRIVE:
            self.line.append(c)
            self.schedule(self.patience, EventKind.GIVE_UP, c)
        elif event.kind is EventKind.FINISH:
            for teller in self.tellers:
                if teller.serving is c:
                    teller.serving = None
                    teller.served += 1
        elif c.started is None:
            self.line.remove(c)
            c.left = True
        self.assign()
        self.longest = max(self.longest, len(self.line))

    def run(self):
        while self.events:
            event = heapq.heappop(self.events)
            self.now = event.time
            self.handle(event)


def solve(gaps, services, tellers, patience):
    bank = Bank(tellers, patience)
    customers = []
    t = 0
    for i, (gap, service) in enumerate(zip(gaps, services, strict=False)):
        t += gap
        c = Customer(i, t, service)
        customers.append(c)
        bank.schedule(t, EventKind.ARRIVE, c)
    bank.run()
    waits = [c.started - c.arrival for c in customers if c.started is not None]
    avg = sum(waits) / len(waits) if waits else -1.0
    lost = sum(1 for c in customers if c.left)
    report = " ".join(f"{t.name}:{t.served}/{t.busy_time}" for t in bank.tellers)
    return bank.now, round(avg, 4), lost, bank.longest, report


ENTRY = solve
EXAMPLES = [
    ([0, 1, 1, 1, 1, 1, 1, 1], [5, 5, 5, 5, 5, 5, 5, 5], 1, 10),
    ([0, 1, 1, 1, 1, 1, 1, 1], [5, 5, 5, 5, 5, 5, 5, 5], 3, 10),
    ([0, 9, 9, 9, 9, 9, 9, 9], [2, 3, 4, 5, 6, 7, 8, 9], 1, 1),
    ([0, 0, 0, 0, 0, 0, 0, 0], [1, 2, 3, 4, 4, 3, 2, 1], 2, 5),
    ([2, 3, 1, 4, 1, 5, 2, 6], [8, 2, 7, 1, 8, 2, 8, 1], 2, 3),
    ([1, 1, 1, 1, 1, 1, 1, 1], [50, 1, 1, 1, 1, 1, 1, 1], 1, 7),
    ([1, 1, 1, 1, 1, 1, 1, 1], [3, 3, 3, 3, 3, 3, 3, 3], 4, 2),
    ([3, 3, 3, 3, 3, 3, 3, 3], [4, 4, 4, 4, 4, 4, 4, 4], 0, 6),
]
