"""Backtracking regular expression matcher: closures and continuations.

Grammar: alternation |, concatenation, * + ?, groups, classes [a-z^], dot, ^ and $."""


LIMITS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class Parser:
    def __init__(self, pattern):
        self.pattern = pattern
        self.pos = 0

    def peek(self):
        return self.pattern[self.pos] if self.pos < len(self.pattern) else ""

    def take(self):
        if self.pos == len(self.pattern):
            raise ValueError("unexpected end")
        self.pos += 1
        return self.pattern[self.pos - 1]

    def accept(self, ch):
        return self.peek() == ch and bool(self.take())

    def alternation(self):
        branches = [self.sequence()]
        while self.accept("|"):
            branches.append(self.sequence())
        return branches[0] if len(branches) == 1 else ("alt", branches)

    def sequence(self):
        parts = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.atom())
            while self.peek() in LIMITS:
                parts[-1] = ("rep", parts[-1], *LIMITS[self.take()])
        return ("seq", parts)

    def atom(self):
        ch = self.take()
        if ch == "(":
            inner = self.alternation()
            if not self.accept(")"):
                raise ValueError("missing )")
            return inner
        if ch == "[":
            return self.char_class()
        if ch in ".^$":
            return ("set", None, False) if ch == "." else ("anchor", ch)
        if ch in LIMITS:
            raise ValueError(f"nothing to repeat at {self.pos - 1}")
        if ch == "\\" and (ch := self.take()) == "d":
            return ("set", frozenset("0123456789"), False)
        return ("char", ch)

    def char_class(self):
        negate = self.accept("^")
        chars = set()
        while not self.accept("]"):
            c = self.take()
            chars.update(map(chr, range(ord(c), ord(self.take() if self.accept("-") else c) + 1)))
        return ("set", frozenset(chars), negate)


def match(node, text, i, k):
    """Match node at i, then call continuation k with the new position."""
    kind = node[0]
    if kind == "char":
        return k(i + 1) if i < len(text) and text[i] == node[1] else None
    if kind == "set":
        fits = i < len(text) and (node[1] is None or (text[i] in node[1]) != node[2])
        return k(i + 1) if fits else None
    if kind == "anchor":
        return k(i) if i == (0 if node[1] == "^" else len(text)) else None
    if kind == "alt":
        ends = (match(branch, text, i, k) for branch in node[1])
        return next((e for e in ends if e is not None), None)
    if kind == "seq":
        def run(n, j):
            return k(j) if n == len(node[1]) else match(node[1][n], text, j, lambda e: run(n + 1, e))
        return run(0, i)
    _, inner, lo, hi = node

    def again(count, j):
        if hi is None or count < hi:
            if (end := match(inner, text, j, lambda e: again(count + 1, e) if e > j else None)) is not None:
                return end
        return k(j) if count >= lo else None
    return again(0, i)


def solve(pattern, text):
    parser = Parser(f"({pattern})")
    try:
        tree = parser.atom()
        if parser.peek():
            raise ValueError("unbalanced )")
    except ValueError as e:
        return "error: " + str(e), -1, []
    spans, i = [], 0
    while i <= len(text):
        if (end := match(tree, text, i, lambda e: e)) is not None:
            spans.append((i, end))
        i = max(i + 1, end or 0)
    return text[spans[0][0]:spans[0][1]] if spans else "", len(spans), spans


def examples(n):
    import random
    r = random.Random(1212)
    letters = ["a(b|c)*d", "[a-c]+[^a-c]", "(ab|a)(bc)?c", "^a.*d$", "(a|bc)+d?", "a*b*c*", "([ab][cd])+", "(a|[bc]+d",
               "b.d|c.a", "(a+b)+d", "a?b?c?d*", "[^b]+b", "(ab|b)*c$"]
    digits = [r"\d+(\.\d+)?", r"[0-9]+\.", "1*2+3?", r"(\d\d)+x", "[1-3]+)", r"x\d*\.?"]
    out = []
    for _ in range(n):
        pool, alphabet = r.choice([(letters, "abcd"), (letters, "aabbcd"), (digits, "1123.x")])
        out.append((r.choice(pool), "".join(r.choices(alphabet, k=r.randint(15, 40)))))
    return out
