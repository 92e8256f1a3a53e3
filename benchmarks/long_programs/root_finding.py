"""Root finding: Newton first; if it fails, bracket the root and fall back to Brent."""


class NoConvergence(ArithmeticError):
    def __init__(self, method, last, count):
        super().__init__(f"{method} gave up at {last:.6g} after {count} steps")
        self.count = count


class Polynomial:
    def __init__(self, coeffs):
        self.coeffs = list(coeffs)

    def __call__(self, x):
        acc = 0.0
        for c in reversed(self.coeffs):
            acc = acc * x + c
        return acc

    def derivative(self):
        return Polynomial([i * c for i, c in enumerate(self.coeffs)][1:])

    def deflate(self, root):
        """Divide by (x - root), dropping the remainder."""
        out, acc = [], 0.0
        for c in reversed(self.coeffs):
            acc = acc * root + c
            out.append(acc)
        return Polynomial(out[-2::-1])

    def bound(self):
        """Cauchy bound of the roots."""
        return 1 + max((abs(c / self.coeffs[-1]) for c in self.coeffs[:-1]), default=0.0)


def newton(f, df, x, tol=1e-12, limit=25):
    for k in range(1, limit + 1):
        slope = df(x)
        if abs(slope) < 1e-14:
            break
        delta = f(x) / slope
        x -= delta
        if abs(delta) <= tol * (1 + abs(x)):
            return x, k
    raise NoConvergence("newton", x, k)


def bracket(f, lo, hi, pieces):
    xs = [lo + (hi - lo) * i / pieces for i in range(pieces + 1)]
    for a, b in zip(xs, xs[1:]):
        if f(a) * f(b) <= 0:
            return a, b
    raise ValueError(f"no sign change in {lo:.3f}..{hi:.3f}")


def brent(f, a, b, tol=1e-12, limit=80):
    fa, fb = f(a), f(b)
    if abs(fa) < abs(fb):
        a, b, fa, fb = b, a, fb, fa
    c, fc, d, bisected = a, fa, a, True
    for k in range(limit):
        if fb == 0 or abs(b - a) < tol:
            return b, k
        if fa != fc and fb != fc:
            s = (a * fb * fc / ((fa - fb) * (fa - fc)) + b * fa * fc / ((fb - fa) * (fb - fc))
                 + c * fa * fb / ((fc - fa) * (fc - fb)))
        else:
            s = b - fb * (b - a) / (fb - fa)
        low, high = sorted(((3 * a + b) / 4, b))
        step = abs(b - c) if bisected else abs(c - d)
        bisected = not low < s < high or abs(s - b) >= step / 2 or step < tol
        if bisected:
            s = (a + b) / 2
        fs = f(s)
        d, c, fc = c, b, fb
        if fa * fs < 0:
            b, fb = s, fs
        else:
            a, fa = s, fs
        if abs(fa) < abs(fb):
            a, b, fa, fb = b, a, fb, fa
    raise NoConvergence("brent", b, limit)


def solve(coeffs, guess):
    p = Polynomial(coeffs)
    roots, used, steps, note = [], "", 0, ""
    while len(p.coeffs) > 1:
        try:
            root, k = newton(p, p.derivative(), guess)
            used += "N"
        except NoConvergence as e:
            steps += e.count
            try:
                root, k = brent(p, *bracket(p, -p.bound(), p.bound(), 24))
                used += "B"
            except (ValueError, NoConvergence) as e2:
                note = str(e2)
                break
        steps += k
        roots.append(root)
        p = p.deflate(root)
    return sorted(roots), used, steps, len(p.coeffs) - 1, note


def examples(n):
    import random
    r = random.Random(1616)
    out = []
    for _ in range(n):
        coeffs = [1.0]
        for _ in range(r.randint(3, 7)):
            root = round(r.uniform(-4, 4), 2)
            coeffs = [(coeffs[i - 1] if i else 0.0) - root * (coeffs[i] if i < len(coeffs) else 0.0)
                      for i in range(len(coeffs) + 1)]
        if r.random() < 0.35:
            coeffs[0] += r.uniform(0, 10)
        out.append((coeffs, round(r.uniform(-6, 6), 2)))
    return out
