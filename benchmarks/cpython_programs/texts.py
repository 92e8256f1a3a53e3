"""Programs over texts: matching, parsing, coding."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.cpython_programs.program import Program, entering

PROGRAMS: list[Program] = []
program = entering(PROGRAMS)


def _pattern(rng):
    pattern = "".join(rng.choice("ab.") + rng.choice(("", "", "*")) for _ in range(rng.randint(2, 6)))
    return pattern, "".join(rng.choice("ab") for _ in range(rng.randint(4, 12)))


def _match(pattern, text):
    if not pattern:
        return not text
    first = bool(text) and (pattern[0] == text[0] or pattern[0] == ".")
    if len(pattern) >= 2 and pattern[1] == "*":
        return _match(pattern[2:], text) or (first and _match(pattern, text[1:]))
    return first and _match(pattern[1:], text[1:])


@program("regular expressions, recursive on texts", _pattern)
def regex(pattern, text):
    return any(_match(pattern, text[i:]) for i in range(len(text) + 1))


@dataclass
class Number:
    value: int


@dataclass
class Operation:
    sign: str
    left: object
    right: object


def _formula(rng, depth=4):
    if depth == 0 or rng.random() < 0.2:
        return str(rng.randint(0, 9))
    return f"({_formula(rng, depth - 1)}{rng.choice('+-*')}{_formula(rng, depth - 1)})"


def _parse(text, i):
    if text[i] != "(":
        return Number(int(text[i])), i + 1
    left, i = _parse(text, i + 1)
    sign = text[i]
    right, i = _parse(text, i + 1)
    return Operation(sign, left, right), i + 1


def _evaluate(node):
    if isinstance(node, Number):
        return node.value
    left, right = _evaluate(node.left), _evaluate(node.right)
    if node.sign == "+":
        return left + right
    if node.sign == "-":
        return left - right
    return left * right % 97


@program("expression trees of dataclasses, parsed from a text", lambda rng: (_formula(rng),))
def formula(text):
    tree, end = _parse(text, 0)
    return _evaluate(tree), end


@program("roman numerals, there and back", lambda rng: (rng.randint(1, 3999),))
def roman(number):
    values = [1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1]
    letters = ["M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"]
    text = ""
    rest = number
    for value, letter in zip(values, letters):  # noqa: B905
        while rest >= value:
            text += letter
            rest -= value
    worth = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
    total = 0
    for k in range(len(text)):
        if k + 1 < len(text) and worth[text[k]] < worth[text[k + 1]]:
            total -= worth[text[k]]
        else:
            total += worth[text[k]]
    return text, total


def _runs(rng):
    return ("".join(rng.choice("abc") * rng.randint(1, 9) for _ in range(rng.randint(3, 10))),)


@program("run length coding of a text", _runs)
def run_lengths(text):
    coded = ""
    i = 0
    while i < len(text):
        j = i
        while j < len(text) and text[j] == text[i]:
            j += 1
        coded += text[i] + str(j - i)
        i = j
    back = ""
    letter = ""
    digits = ""
    for c in coded + "$":
        if c.isdigit():
            digits += c
        else:
            if digits:
                back += letter * int(digits)
            letter, digits = c, ""
    return coded, back == text


def _sentence(rng):
    return (" ".join(rng.choice(("the", "cat", "sat", "on", "a", "mat", "dog")) for _ in range(rng.randint(8, 24))),)


@program("counts of the words of a sentence", _sentence)
def word_counts(sentence):
    counts = {}
    for word in sentence.split():
        counts[word] = counts.get(word, 0) + 1
    best = max(counts, key=lambda word: (counts[word], word))
    return best, counts[best], len(counts)
