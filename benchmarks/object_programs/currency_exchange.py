"""Exchange rates by the best path, with routes that may not exist."""

from math import inf


class Currency:
    def __init__(self, code, index):
        self.code = code
        self.index = index


class NoRoute(Exception):
    pass


class Exchange:
    def __init__(self, codes, fee):
        self.currencies = {code: Currency(code, i) for i, code in enumerate(codes)}
        n = len(codes)
        self.codes = codes
        self.rate = [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]
        self.via = [[None] * n for _ in range(n)]
        self.fee = fee

    def quote(self, src, dst, rate):
        i = self.currencies[src].index
        j = self.currencies[dst].index
        self.rate[i][j] = rate * (1 - self.fee)
        if rate > 0:
            self.rate[j][i] = (1 - self.fee) / rate

    def settle(self):
        n = len(self.codes)
        for k in range(n):
            for i in range(n):
                for j in range(n):
                    if i == j or k in (i, j):
                        continue
                    through = self.rate[i][k] * self.rate[k][j]
                    if through > self.rate[i][j] + 1e-12:
                        self.rate[i][j] = through
                        self.via[i][j] = k

    def path(self, i, j, depth=0):
        k = self.via[i][j]
        if k is None or depth > 2:
            return [self.codes[j]]
        return self.path(i, k, depth + 1) + self.path(k, j, depth + 1)

    def convert(self, src, dst, amount):
        try:
            i, j = self.currencies[src].index, self.currencies[dst].index
        except KeyError as e:
            raise NoRoute(f"unknown currency {e.args[0]}") from e
        if self.rate[i][j] == 0:
            raise NoRoute(f"no route {src}->{dst}")
        return amount * self.rate[i][j], [src] + self.path(i, j)


def solve(src, dst, amount, usd_eur, eur_gbp, fee):
    market = Exchange(["USD", "EUR", "GBP", "JPY", "XXX"], fee)
    market.quote("USD", "EUR", usd_eur)
    market.quote("EUR", "GBP", eur_gbp)
    market.quote("USD", "JPY", 150.0)
    market.quote("JPY", "GBP", 0.005)
    market.settle()
    try:
        value, path = market.convert(src, dst, amount)
    except NoRoute as e:
        return -1.0, str(e), 0
    best, worst = -inf, inf
    for code in market.codes:
        try:
            v, _ = market.convert(src, code, 1.0)
        except NoRoute:
            continue
        best, worst = max(best, v), min(worst, v)
    return round(value, 4), ">".join(path) + f" spread {best / worst:.1f}", len(path) - 1


ENTRY = solve
EXAMPLES = [
    ("USD", "GBP", 100.0, 0.9, 0.85, 0.01),
    ("USD", "GBP", 100.0, 0.9, 0.8, 0.0),
    ("GBP", "USD", 50.0, 0.95, 0.9, 0.02),
    ("EUR", "JPY", 10.0, 0.92, 0.86, 0.005),
    ("USD", "XXX", 10.0, 0.92, 0.86, 0.005),
    ("ABC", "USD", 10.0, 0.92, 0.86, 0.005),
    ("EUR", "USD", 1.0, 0.0, 0.7, 0.03),
    ("JPY", "JPY", 7.0, 0.9, 0.7, 0.1),
]
