"""Word statistics of a text: frequencies, anagram groups, and the most surprising pairs."""

import string
from collections import Counter, defaultdict
from functools import reduce
from random import Random

STOP_WORDS = frozenset("a an and the of to in is it on at for with".split())
KEEP = frozenset(string.ascii_lowercase + "'")


def words(text):
    """Lower-case words with punctuation stripped, lazily."""
    for chunk in text.lower().replace("-", " ").split():
        word = "".join(ch for ch in chunk if ch in KEEP).strip("'")
        if word:
            yield word


def signature(word):
    return "".join(sorted(word))


def anagram_groups(vocabulary):
    groups = defaultdict(set)
    for word in vocabulary:
        groups[signature(word)].add(word)
    return sorted(
        (sorted(group) for group in groups.values() if len(group) > 1),
        key=lambda g: (-len(g), g),
    )


def bigrams(tokens):
    return Counter(f"{a} {b}" for a, b in zip(tokens, tokens[1:]) if not {a, b} & STOP_WORDS)


def top(counter, k):
    return sorted(counter.items(), key=lambda kv: (-kv[1], kv[0]))[:k]


def syllables(word):
    vowels = "aeiouy"
    starts = sum(
        1 for i, ch in enumerate(word) if ch in vowels and (i == 0 or word[i - 1] not in vowels)
    )
    if word.endswith("e") and not word.endswith("le") and starts > 1:
        starts -= 1
    return max(starts, 1)


def fingerprint(tokens):
    """A rolling FNV-like hash of the whole list of tokens."""
    def mix(h, word):
        for ch in word:
            h = ((h ^ ord(ch)) * 16777619) & 0xFFFFFFFF
        return h

    return reduce(mix, tokens, 2166136261)


def title_case(word):
    head, *tail = word
    return head.upper() + "".join(tail)


def solve(text, k):
    tokens = list(words(text))
    if not tokens:
        return [], [], [], [], ""
    freq = Counter(w for w in tokens if w not in STOP_WORDS)
    lengths = Counter(map(len, tokens))
    by_initial = defaultdict(list)
    for w in sorted(freq):
        by_initial[w[0]].append(w)
    busiest = max(by_initial, key=lambda c: (len(by_initial[c]), c), default="-")
    average = sum(syllables(w) for w in tokens) / len(tokens)
    headline = " ".join(title_case(w) for w, _ in top(freq, 3))
    report = [f"{w:<8}|{'*' * c}" for w, c in top(freq, k)]
    return (
        report,
        anagram_groups(freq),
        [pair for pair, c in top(bigrams(tokens), k) if c > 1],
        sorted(lengths.items()),
        f"{headline} [{busiest}] {average:.3f} {fingerprint(tokens):08x}",
    )


def examples(n):
    rng = Random(1717)
    nouns = "listen silent night thing tea eat ate stone notes onset care race acre dog god river post stop spot".split()
    glue = "the and of to a with in it's on".split()
    out = []
    for _ in range(n):
        pieces = []
        for _ in range(rng.randint(10, 90)):
            w = rng.choice(nouns if rng.random() < 0.65 else glue)
            pieces.append(rng.choice([w, w, w, w.capitalize(), w + ",", w + ".", w + "-" + rng.choice(nouns)]))
        out.append((" ".join(pieces), rng.randint(3, 8)))
    return out
