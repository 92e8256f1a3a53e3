"""Calculator: generator tokenizer, precedence-climbing parser, tuple AST, evaluator."""
import math


def tokenize(src):
    i = 0
    while i < len(src):
        ch, j = src[i], i + 1
        if ch.isalnum() or ch == ".":
            while j < len(src) and (src[j].isalnum() or src[j] in "._"):
                j += 1
            yield "name" if ch.isalpha() else "num", src[i:j], i
        elif ch in "+-*/%^(),=":
            yield "op", ch, i
        elif not ch.isspace():
            raise SyntaxError(f"bad character {ch!r} at {i}")
        i = j
    yield "end", "", len(src)


BINDING = {"+": (10, 11), "-": (10, 11), "*": (20, 21), "/": (20, 21), "%": (20, 21), "^": (31, 30)}


class Parser:
    def __init__(self, src):
        self.tokens = tokenize(src)
        self.advance()

    def advance(self):
        self.kind, self.text, self.at = next(self.tokens, ("end", "", -1))

    def accept(self, text):
        if found := self.text == text:
            self.advance()
        return found

    def statement(self):
        name, tree = "ans", self.expr(0)
        if tree[0] == "var" and self.accept("="):
            name, tree = tree[1], self.expr(0)
        if self.kind != "end":
            raise SyntaxError(f"unexpected {self.text} at {self.at}")
        return name, tree

    def expr(self, floor):
        left = self.prefix()
        while (op := self.text) in BINDING and BINDING[op][0] >= floor:
            self.advance()
            left = ("call", op, [left, self.expr(BINDING[op][1])])
        return left

    def prefix(self):
        kind, text, at = self.kind, self.text, self.at
        self.advance()
        if kind == "num":
            return ("num", float(text))
        if kind == "name":
            return ("call", text, self.sequence()) if self.accept("(") else ("var", text)
        if text == "-":
            return ("call", "neg", [self.expr(25)])
        if text == "(" and len(inner := self.sequence()) == 1:
            return inner[0]
        raise SyntaxError(f"unexpected {text or kind} at {at}")

    def sequence(self):
        items = [self.expr(0)]
        while self.accept(","):
            items.append(self.expr(0))
        if not self.accept(")"):
            raise SyntaxError(f"expected ) at {self.at}")
        return items


FUNCTIONS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
             "%": lambda a, b: a % b, "^": math.pow, "neg": lambda a: -a, "sqrt": math.sqrt, "abs": abs, "max": max, "min": min,
             "hypot": math.hypot, "sum": lambda *xs: sum(xs), "avg": lambda *xs: sum(xs) / len(xs)}


def evaluate(tree, env):
    match tree:
        case ("num", value):
            return value
        case ("var", name) if name in env:
            return env[name]
        case ("call", name, args) if name in FUNCTIONS:
            return FUNCTIONS[name](*[evaluate(a, env) for a in args])
    raise NameError(f"unknown name {tree[1]}")


def solve(lines):
    env, results, errors = {"pi": math.pi, "ans": 0.0}, [], []
    for number, line in enumerate(lines, 1):
        try:
            name, tree = Parser(line).statement()
            env[name] = evaluate(tree, env)
            results.append(env[name])
        except (SyntaxError, NameError) as e:
            errors.append(f"{number}: {e}")
        except (ArithmeticError, ValueError, TypeError) as e:
            errors.append(f"{number}: {type(e).__name__}")
    return results, errors, sorted(env)


def examples(n):
    import random
    r = random.Random(1313)

    def gen(depth):
        k = r.random() if depth else 0.0
        if k < 0.2:
            return r.choice([str(r.randint(0, 40)), f"{r.uniform(0, 9):.2f}", "x", "y", "z_1", "ans"])
        if k < 0.65:
            return f"{gen(depth - 1)} {r.choice('+-*/+-*%')} {gen(depth - 1)}"
        if k < 0.85:
            return f"({gen(depth - 1)})^{r.randint(1, 3)}" if k < 0.75 else "-" + gen(depth - 1)
        return f"{r.choice(['max', 'min', 'sum', 'avg', 'hypot'])}({gen(depth - 1)}, {gen(depth - 1)})"

    bad = ["1/0", "2 +", "(3", "foo(1)", "3 $ 4", "sqrt(-1)", "1.2.3", "9^999", "max(3)"]
    return [([f"{v} = {r.randint(1, 9)}" for v in ("x", "y", "z_1") if r.random() < 0.9]
             + [gen(3) for _ in range(r.randint(1, 7))] + [r.choice(bad)] * (r.random() < 0.4),) for _ in range(n)]
