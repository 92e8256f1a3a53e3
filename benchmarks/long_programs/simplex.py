"""Two-phase-free simplex: maximise c.x subject to A x <= b, x >= 0, with b >= 0."""

from random import Random

EPS = 1e-9


class Unbounded(Exception):
    def __init__(self, column):
        super().__init__(f"unbounded along variable {column}")
        self.column = column


class Infeasible(Exception):
    pass


class Tableau:
    def __init__(self, a, b, c):
        if any(x < 0 for x in b):
            raise Infeasible("the origin is not feasible")
        m, n = len(a), len(c)
        self.n_vars = n
        self.rows = []
        for i, (row, rhs) in enumerate(zip(a, b)):
            slack = [0.0] * m
            slack[i] = 1.0
            self.rows.append([float(x) for x in row] + slack + [float(rhs)])
        self.objective = [-float(x) for x in c] + [0.0] * (m + 1)
        self.basis = [n + i for i in range(m)]
        self.pivots = 0

    def entering(self):
        """Dantzig's rule for the first pivots, then Bland's, to avoid cycles."""
        candidates = [(v, j) for j, v in enumerate(self.objective[:-1]) if v < -EPS]
        if not candidates:
            return None
        if self.pivots < 20:
            return min(candidates)[1]
        return candidates[0][1]

    def leaving(self, col):
        best_row, best_ratio = None, float("inf")
        for i, row in enumerate(self.rows):
            if row[col] <= EPS:
                continue
            ratio = row[-1] / row[col]
            tie = abs(ratio - best_ratio) < EPS and self.basis[i] < self.basis[best_row]
            if ratio < best_ratio - EPS or tie:
                best_row, best_ratio = i, ratio
        if best_row is None:
            raise Unbounded(col)
        return best_row

    def pivot(self, r, col):
        p = self.rows[r][col]
        pivot_row = [x / p for x in self.rows[r]]
        self.rows[r] = pivot_row
        for i, row in enumerate(self.rows):
            if i != r and abs(row[col]) > EPS:
                k = row[col]
                self.rows[i] = [x - k * y for x, y in zip(row, pivot_row)]
        k = self.objective[col]
        self.objective = [x - k * y for x, y in zip(self.objective, pivot_row)]
        self.basis[r] = col
        self.pivots += 1

    def run(self):
        while (col := self.entering()) is not None:
            self.pivot(self.leaving(col), col)
        solution = [0.0] * self.n_vars
        for row, var in zip(self.rows, self.basis):
            if var < self.n_vars:
                solution[var] = row[-1]
        return self.objective[-1], solution


def solve(a, b, c):
    status = "optimal"
    try:
        tableau = Tableau(a, b, c)
    except Infeasible as exc:
        status = f"relaxed, {exc}"
        tableau = Tableau(a, [abs(x) for x in b], c)
    try:
        value, xs = tableau.run()
    except Unbounded as exc:
        return str(exc), float(exc.column), [], tableau.pivots
    xs = [round(x, 6) + 0.0 for x in xs]
    return status, round(value, 6), xs, tableau.pivots


def examples(n):
    rng = Random(808)
    out = []
    for i in range(n):
        rows, cols = rng.randint(5, 12), rng.randint(4, 9)
        low = -4 if i % 6 == 5 else 1
        a = [[rng.randint(low, 12) for _ in range(cols)] for _ in range(rows)]
        b = [rng.randint(10, 120) for _ in range(rows)]
        if i % 15 == 14:
            b[-1] = -5
        out.append((a, b, [rng.randint(1, 15) for _ in range(cols)]))
    return out
