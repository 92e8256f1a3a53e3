"""Scheduling and counting."""

import heapq

from benchmarks.fifty_lines.program import Program, each, integers


def bank(arrivals, durations, priority):
    """Waiting times at two counters, with a queue by priority and a break."""
    n = len(arrivals)
    time = 0
    clock = [0, 0]
    for i in range(n):
        time += arrivals[i]
    queue = []
    now = 0
    arrived = 0
    next_arrival = arrivals[0]
    served, waited, longest = 0, 0, 0
    breaks = 0
    while served < n:
        while arrived < n and next_arrival <= now:
            heapq.heappush(queue, (priority[arrived], next_arrival, arrived))
            arrived += 1
            if arrived < n:
                next_arrival += arrivals[arrived]
        for counter in range(2):
            if clock[counter] > now or not queue:
                continue
            _, came, who = heapq.heappop(queue)
            wait = now - came
            waited += wait
            if wait > longest:
                longest = wait
            clock[counter] = now + durations[who]
            served += 1
            if served % 4 == 0:
                clock[counter] += 2
                breaks += 1
        soon = 10000
        if arrived < n:
            soon = next_arrival
        for counter in range(2):
            if queue and now < clock[counter] < soon:
                soon = clock[counter]
        if soon <= now or soon == 10000:
            now += 1
        else:
            now = soon
        if now > 2000:
            break
    return waited, longest, breaks


def inventory(demand, capacity, reorder):
    """The cost of a store that orders ahead, with expiry, and sales that are lost."""
    shelf = []
    orders = []
    cost, lost, expired = 0, 0, 0
    stock = capacity
    shelf.append([5, capacity])
    for day in range(len(demand)):
        arriving = []
        later = []
        for when, amount in orders:
            if when == day:
                arriving.append(amount)
            else:
                later.append((when, amount))
        orders = later
        for amount in arriving:
            shelf.append([day + 6, amount])
            stock += amount
        fresh = []
        for batch in shelf:
            if batch[0] <= day:
                expired += batch[1]
                stock -= batch[1]
            else:
                fresh.append(batch)
        shelf = fresh
        want = demand[day]
        for batch in shelf:
            take = min(want, batch[1])
            batch[1] -= take
            want -= take
            stock -= take
            if want == 0:
                break
        lost += want
        cost += stock + 3 * want
        if stock <= reorder and len(orders) == 0:
            orders.append((day + 2, capacity - stock))
            cost += 4
        if len(shelf) > 3:
            cost += 2
    return cost, lost, expired


PROGRAMS = (
    Program(bank, each(integers(1, 4, 8), integers(1, 9, 8), integers(0, 3, 8))),
    Program(inventory, each(integers(0, 6, 14), integers(10, 20), integers(3, 8))),
)
