"""Sentences as binary trees with a sentiment at every node, shaped like the Stanford Sentiment Treebank.

The words are made up and the sentiment follows a rule, so what can be learnt is known: a word has a polarity, two
phrases add up, a negator turns the phrase beside it around, an intensifier doubles it. Which phrase that is, only the
tree tells: a bag of words cannot know.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MOST, MEAN, SPREAD = 50, 19.0, 9.3  # leaves of a sentence: at most, mean, standard deviation
EXTREME = 4  # sentiments are cut off at -4 and 4
CLASSES = ("very negative", "negative", "neutral", "positive", "very positive")
ONE_LEFT, ONE_RIGHT = 0.45, 0.1  # how often a phrase is a word and a phrase, or a phrase and a word

# What words there are: (how many of them, share of the words of a sentence, polarity, what they do to the phrase beside
# them). Neighbours add up unless one of them is a word that does something.
ADDS, NEGATES, DOUBLES = range(3)
LEXICON = (
    (120, 0.42, 0, ADDS),
    (40, 0.14, 1, ADDS),
    (20, 0.07, 2, ADDS),
    (40, 0.14, -1, ADDS),
    (20, 0.07, -2, ADDS),
    (8, 0.10, 0, NEGATES),
    (8, 0.06, 0, DOUBLES),
)
COUNTS = np.array([row[0] for row in LEXICON])
SHARES = np.array([row[1] for row in LEXICON])
WORDS = int(COUNTS.sum())
POLARITY = np.repeat([row[2] for row in LEXICON], COUNTS)
ROLE = np.repeat([row[3] for row in LEXICON], COUNTS)
CHANCE = np.repeat(SHARES / SHARES.sum() / COUNTS, COUNTS)  # of each word


class Trees(NamedTuple):
    """Trees as arrays [trees, nodes], or one tree as arrays [nodes]. Node 0 is the root, parents precede children.

    A leaf has no children: `left` and `right` are -1, and `word` says which word it is. What is behind the last node of
    a tree is reached from no root. `weight` is the part of a node in the loss of its tree.
    """

    left: np.ndarray
    right: np.ndarray
    word: np.ndarray
    label: np.ndarray
    weight: np.ndarray

    @property
    def inner(self) -> np.ndarray:
        """Which nodes have children."""
        return self.left >= 0

    def nodes(self) -> np.ndarray:
        """How many nodes each tree has."""
        return 1 + 2 * self.inner.sum(axis=-1)

    def pick(self, which: np.ndarray | slice) -> Trees:
        """Some of the trees."""
        return Trees(*(array[which] for array in self))


def generate(count: int, seed: int, most: int = MOST, everywhere: bool = True) -> Trees:
    """Random trees; the loss is that of all nodes, or (`everywhere=False`) that of the root alone."""
    rng = np.random.default_rng(seed)
    shape = (count, 2 * most - 1)
    left, right = np.full(shape, -1, np.int32), np.full(shape, -1, np.int32)
    for row, leaves in enumerate(sentence_lengths(rng, count, most)):
        _grow(rng, int(leaves), left[row], right[row])
    word = rng.choice(WORDS, shape, p=CHANCE).astype(np.int32)
    label = label_of(values(left, right, word))
    exists = np.arange(shape[1])[None] < 1 + 2 * (left >= 0).sum(axis=1, keepdims=True)
    counted = exists if everywhere else np.arange(shape[1])[None] == np.zeros((count, 1))
    weight = (counted / counted.sum(axis=1, keepdims=True)).astype(np.float32)
    return Trees(left, right, np.where(exists & (left < 0), word, -1), np.where(exists, label, 0), weight)


def sentence_lengths(rng: np.random.Generator, count: int, most: int) -> np.ndarray:
    """Numbers of leaves."""
    shape = (MEAN / SPREAD) ** 2
    return np.clip(np.rint(rng.gamma(shape, MEAN / shape, count)), 2, most).astype(int)


def _grow(rng: np.random.Generator, leaves: int, left: np.ndarray, right: np.ndarray) -> None:
    """Fill in the children of a random tree: a phrase is a word and a phrase, the reverse, or two of any length."""
    stack, node = [(-1, leaves)], 0  # phrases to come: the parent whose right child it is (none: -1), its leaves
    while stack:
        parent, leaves = stack.pop()
        if parent >= 0:
            right[parent] = node
        while leaves > 1:
            first = _first_part(rng, leaves)
            stack.append((node, leaves - first))
            left[node] = node + 1
            node, leaves = node + 1, first
        node += 1


def _first_part(rng: np.random.Generator, leaves: int) -> int:
    chance = rng.random()
    if chance < ONE_LEFT:
        return 1
    return leaves - 1 if chance < ONE_LEFT + ONE_RIGHT else int(rng.integers(1, leaves))


def values(left: np.ndarray, right: np.ndarray, word: np.ndarray) -> np.ndarray:
    """The sentiment of every node by the rule, -4 to 4; of all trees at once, children first."""
    value, role = POLARITY[word], np.where(left < 0, ROLE[word], ADDS)
    row = np.arange(len(left))
    for node in range(left.shape[1] - 1, -1, -1):
        l, r = left[:, node], right[:, node]  # noqa: E741
        joined = combine(role[row, l], value[row, l], role[row, r], value[row, r])
        value[:, node] = np.where(l < 0, value[:, node], joined)
    return value


def combine(role: np.ndarray, value: np.ndarray, other_role: np.ndarray, other_value: np.ndarray) -> np.ndarray:
    """The sentiment of two phrases side by side. The first that does something does it to the other."""
    acts = np.where(role != ADDS, role, other_role)
    on = np.where(role != ADDS, other_value, value)
    result = np.select([acts == NEGATES, acts == DOUBLES], [-on, 2 * on], value + other_value)
    return np.clip(result, -EXTREME, EXTREME)


def label_of(value: np.ndarray) -> np.ndarray:
    """The class of a sentiment: its sign, and whether it is beyond 2."""
    return (2 + np.sign(value) + np.sign(value) * (np.abs(value) > 2)).astype(np.int32)


def heights(trees: Trees) -> np.ndarray:
    """Of every node, [trees, nodes]: 0 for a leaf."""
    height, row = np.zeros(trees.left.shape, np.int32), np.arange(len(trees.left))
    for node in range(trees.left.shape[1] - 1, -1, -1):
        taller = 1 + np.maximum(height[row, trees.left[:, node]], height[row, trees.right[:, node]])
        height[:, node] = np.where(trees.inner[:, node], taller, 0)
    return height


def highest(trees: Trees) -> int:
    """The height of the highest tree: how deep a recursion goes below its root."""
    return int(heights(trees).max())
