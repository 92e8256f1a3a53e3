"""Polynomials with operators, and a root by Newton's method that may raise."""


class Polynomial:
    def __init__(self, coeffs):
        self.coeffs = list(coeffs)
        while len(self.coeffs) > 1 and self.coeffs[-1] == 0:
            self.coeffs.pop()

    @property
    def degree(self):
        return len(self.coeffs) - 1

    def is_zero(self):
        return self.coeffs == [0] or not self.coeffs

    def __call__(self, x):
        result = 0
        for c in reversed(self.coeffs):
            result = result * x + c
        return result

    def __add__(self, other):
        n = max(len(self.coeffs), len(other.coeffs))
        out = [0] * n
        for i, c in enumerate(self.coeffs):
            out[i] += c
        for i, c in enumerate(other.coeffs):
            out[i] += c
        return Polynomial(out)

    def __neg__(self):
        return Polynomial([-c for c in self.coeffs])

    def __sub__(self, other):
        return self + -other

    def __mul__(self, other):
        out = [0] * (len(self.coeffs) + len(other.coeffs) - 1)
        for i, a in enumerate(self.coeffs):
            for j, b in enumerate(other.coeffs):
                out[i + j] += a * b
        return Polynomial(out)

    def derivative(self):
        return Polynomial([i * c for i, c in enumerate(self.coeffs)][1:] or [0])

    def __str__(self):
        if self.is_zero():
            return "0"
        parts = []
        for i in range(self.degree, -1, -1):
            c = self.coeffs[i]
            if c == 0:
                continue
            sign = "-" if c < 0 else "+"
            size = abs(c)
            body = "" if size == 1 and i > 0 else str(size)
            if i > 0:
                body += "x" if i == 1 else f"x^{i}"
            parts.append((sign, body))
        first_sign, first = parts[0]
        text = ("-" if first_sign == "-" else "") + first
        for sign, body in parts[1:]:
            text += f" {sign} {body}"
        return text


def newton(p, x, tol=1e-9, max_iter=40):
    d = p.derivative()
    for i in range(max_iter):
        slope = d(x)
        if slope == 0:
            raise ZeroDivisionError("flat")
        step = p(x) / slope
        x -= step
        if abs(step) < tol:
            return x, i + 1
    raise ArithmeticError("no convergence")


def solve(a, b, start):
    p, q = Polynomial(a), Polynomial(b)
    r = p * q - p
    try:
        root, iters = newton(p, start)
        answer = f"root {root:.6f}"
    except ZeroDivisionError as e:
        answer, iters = str(e), 0
    except ArithmeticError as e:
        answer, iters = str(e), -1
    return str(r), r.degree, r(2), answer, iters


ENTRY = solve
EXAMPLES = [
    ([-2, 0, 1, 0], [1, 1, 0], 1.0),
    ([-6, 11, -6, 1], [0, 0, 2], 0.0),
    ([1, 0, 1, 0], [1, 0, 0], 0.5),
    ([5, 0, 0, 0], [3, -1, 4], 1.0),
    ([0, 0, 0, 0], [1, 2, 3], 2.0),
    ([-1, -1, 0, 1], [-1, 1, -1], 1.5),
    ([2, -2, 0, 1], [0, 1, 0], 0.0),
    ([-4, 3, 0, -1], [7, 0, -1], -2.0),
]
