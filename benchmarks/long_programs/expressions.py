"""Expression trees: parse, differentiate, simplify and evaluate."""

from random import Random


class Expr:
    def __eq__(self, other):
        return isinstance(other, Expr) and str(self) == str(other)

    def simplify(self):
        return self


class Num(Expr):
    def __init__(self, value):
        self.value = value

    def diff(self, var):
        return Num(0)

    def eval(self, env):
        return self.value

    def __str__(self):
        return str(self.value)


class Var(Expr):
    def __init__(self, name):
        self.name = name

    def diff(self, var):
        return Num(1 if self.name == var else 0)

    def eval(self, env):
        return env[self.name]

    def __str__(self):
        return self.name


class BinOp(Expr):
    def __init__(self, left, right):
        self.left, self.right = left, right

    def simplify(self):
        left, right = self.left.simplify(), self.right.simplify()
        if isinstance(left, Num) and isinstance(right, Num):
            return Num(self.apply(left.value, right.value))
        return self.reduce(left, right) or type(self)(left, right)

    def eval(self, env):
        return self.apply(self.left.eval(env), self.right.eval(env))

    def __str__(self):
        return f"({self.left} {self.symbol} {self.right})"


def is_num(e, value):
    return isinstance(e, Num) and e.value == value


class Add(BinOp):
    symbol = "+"
    apply = staticmethod(lambda a, b: a + b)

    def diff(self, var):
        return Add(self.left.diff(var), self.right.diff(var))

    def reduce(self, a, b):
        if is_num(a, 0) or is_num(b, 0):
            return b if is_num(a, 0) else a
        return Mul(Num(2), a).simplify() if a == b else None


class Mul(BinOp):
    symbol = "*"
    apply = staticmethod(lambda a, b: a * b)

    def diff(self, var):
        return Add(Mul(self.left.diff(var), self.right), Mul(self.left, self.right.diff(var)))

    def reduce(self, a, b):
        if is_num(a, 0) or is_num(b, 0):
            return Num(0)
        return b if is_num(a, 1) else a if is_num(b, 1) else None


def parse(text):
    """Read prefix notation, such as '+ x * 3 y'."""
    tokens = iter(text.split())

    def expr():
        tok = next(tokens)
        for cls in (Add, Mul):
            if tok == cls.symbol:
                return cls(expr(), expr())
        return Num(int(tok)) if tok.isdigit() else Var(tok)

    return expr()


def solve(text, var, env):
    tree = parse(text)
    slope = tree.diff(var)
    short = slope.simplify()
    return str(tree.simplify()), str(short), tree.eval(env), slope.eval(env) == short.eval(env)


def examples(n):
    rng = Random(909)

    def build(depth):
        if depth == 0 or (depth < 2 and rng.random() < 0.2):
            return rng.choice(["x", "y", "x", "z", str(rng.randint(0, 5))])
        return f"{rng.choice('+*')} {build(depth - 1)} {build(depth - 1)}"

    envs = [{v: rng.randint(-3, 4) for v in "xyz"} for _ in range(n)]
    return [(build(rng.randint(3, 4)), rng.choice("xy"), env) for env in envs]
