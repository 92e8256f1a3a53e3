"""Limit order book: price-time priority, lazy cancellation, log of trades."""

import heapq
from collections import defaultdict
from dataclasses import dataclass
from random import Random
from typing import NamedTuple


class BookError(Exception):
    pass


class Trade(NamedTuple):
    buyer: str
    seller: str
    price: int
    quantity: int


@dataclass
class Order:
    id: int
    trader: str
    side: str
    price: int
    quantity: int

    @property
    def key(self):
        return (-self.price if self.side == "buy" else self.price), self.id

    def crosses(self, other):
        if self.side == "buy":
            return self.price >= other.price
        return self.price <= other.price


class OrderBook:
    def __init__(self):
        self.queues = {"buy": [], "sell": []}
        self.live = {}
        self.trades = []
        self.next_id = 1

    def best(self, side):
        queue = self.queues[side]
        while queue and queue[0][1] not in self.live:
            heapq.heappop(queue)
        return self.live[queue[0][1]] if queue else None

    def submit(self, trader, side, price, quantity):
        if quantity <= 0 or price <= 0:
            raise BookError("bad order")
        order = Order(self.next_id, trader, side, price, quantity)
        self.next_id += 1
        other_side = "sell" if side == "buy" else "buy"
        while order.quantity and (resting := self.best(other_side)) and order.crosses(resting):
            self.match(order, resting)
        if order.quantity:
            self.live[order.id] = order
            heapq.heappush(self.queues[side], order.key)
        return order.id

    def match(self, order, resting):
        traded = min(order.quantity, resting.quantity)
        buyer, seller = (order, resting) if order.side == "buy" else (resting, order)
        self.trades.append(Trade(buyer.trader, seller.trader, resting.price, traded))
        order.quantity -= traded
        resting.quantity -= traded
        if resting.quantity == 0:
            del self.live[resting.id]

    def cancel(self, trader, order_id):
        order = self.live.get(order_id)
        if order is None or order.trader != trader:
            raise BookError("no such order" if order is None else "not yours")
        del self.live[order_id]

    def depth(self, side):
        levels = defaultdict(int)
        for order in self.live.values():
            if order.side == side:
                levels[order.price] += order.quantity
        return sorted(levels.items(), reverse=side == "buy")[:5]


def solve(events):
    book = OrderBook()
    errors = defaultdict(int)
    for event in events:
        try:
            match event:
                case ("cancel", trader, order_id):
                    book.cancel(trader, order_id)
                case (side, trader, price, quantity):
                    book.submit(trader, side, price, quantity)
        except BookError as exc:
            errors[str(exc)] += 1
    position = defaultdict(int)
    for t in book.trades:
        position[t.buyer] += t.quantity
        position[t.seller] -= t.quantity
    turnover = sum(t.price * t.quantity for t in book.trades)
    return book.depth("buy"), book.depth("sell"), turnover, sorted(position.items()), sorted(errors.items())


def examples(n):
    rng = Random(1818)
    names = ["ann", "bob", "cy", "dee"]

    def event(i):
        if rng.random() < 0.2:
            return ("cancel", rng.choice(names), rng.randint(1, max(i, 1)))
        side = rng.choice(["buy", "sell"])
        price = 100 + rng.randint(-8, 8) + (-3 if side == "buy" else 3)
        return (side, rng.choice(names), price, rng.randint(0, 20))

    return [([event(i) for i in range(rng.randint(20, 180))],) for _ in range(n)]
