"""Huffman coding: tuples as tree nodes, heapq as queue, canonical codes, encode and decode."""

import heapq
from collections import Counter
from itertools import count
from random import Random


def build_tree(freq):
    """A leaf is a one-character string; an inner node is a pair (left, right)."""
    tie = count()
    heap = [(weight, next(tie), symbol) for symbol, weight in sorted(freq.items())]
    heapq.heapify(heap)
    while len(heap) > 1:
        w1, _, left = heapq.heappop(heap)
        w2, _, right = heapq.heappop(heap)
        heapq.heappush(heap, (w1 + w2, next(tie), (left, right)))
    return heap[0][2]


def code_table(tree):
    codes = {}

    def walk(node, prefix):
        if isinstance(node, tuple):
            left, right = node
            walk(left, prefix + "0")
            walk(right, prefix + "1")
        else:
            codes[node] = prefix or "0"

    walk(tree, "")
    return codes


def canonical(codes):
    """Same code lengths, but codes assigned in order of (length, symbol)."""
    ordered = sorted(codes, key=lambda s: (len(codes[s]), s))
    result = {}
    value, previous = 0, 0
    for symbol in ordered:
        length = len(codes[symbol])
        value <<= length - previous
        result[symbol] = format(value, f"0{length}b")
        value += 1
        previous = length
    return result


def encode(text, codes):
    return "".join(codes[ch] for ch in text)


def decode(bits, codes):
    inverse = {code: symbol for symbol, code in codes.items()}
    out, current = [], ""
    for bit in bits:
        current += bit
        if current in inverse:
            out.append(inverse[current])
            current = ""
    if current:
        raise ValueError("trailing bits")
    return "".join(out)


def pack(bits):
    """Bits to hex digits, padded on the right with zeros."""
    padded = bits + "0" * (-len(bits) % 8)
    return bytes(int(padded[i : i + 8], 2) for i in range(0, len(padded), 8)).hex()


def solve(text):
    if not text:
        return "", [], 0.0, True
    freq = Counter(text)
    codes = canonical(code_table(build_tree(freq)))
    bits = encode(text, codes)
    same = decode(bits, codes) == text
    table = [f"{ch!r}:{code}" for ch, code in codes.items()]
    return pack(bits), table, round(len(bits) / len(text), 4), same


def examples(n):
    rng = Random(1414)
    words = (
        "the quick brown fox jumps over the lazy dog while seven wizards "
        "make toxic brew for the evil queen and her banana eating llamas"
    ).split()
    out = []
    for i in range(n):
        if i % 9 == 8:
            text = rng.choice(["z", "ab", "aab"]) * rng.randint(50, 120)
        else:
            text = " ".join(rng.choice(words) for _ in range(rng.randint(5, 50)))
        out.append((text,))
    return out
