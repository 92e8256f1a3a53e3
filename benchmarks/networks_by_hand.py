"""Networks of `examples.networks` batched by hand in JAX, where there is a natural way; for `benchmarks.networks`.

Trees level by level (`examples.treelstm.by_hand`), sentences padded to the longest, with one `jax.lax.scan` for all
of them. What depends on the shapes of the examples alone is made by NumPy beforehand and is no part of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import networks_masked as masked
from examples.networks import mv_rnn, rae, seq2seq, tree_lstm, tree_rae
from examples.networks.run import Task
from examples.treelstm import by_hand
from examples.treelstm.data import Trees

ROWS = 16, 64  # nodes that are computed at once; which is faster depends on the trees


@dataclass(frozen=True)
class ByHand:
    """A network by hand: what it says of all examples, its mean loss with the gradient, and the steps of its loop."""

    predict: Callable[[Any], Any]
    gradient: Callable[[Any], Any]
    steps: int


def ways(task: Task) -> dict[str, ByHand]:
    """All ways to batch a network by hand."""
    match task.name:
        case "tree_lstm":
            return trees(task, tree_lstm.leaf, tree_lstm.compose)
        case "mv_rnn":
            return trees(task, lambda w, word: (w["vectors"][word], w["matrices"][word]), mv_compose)
        case "birnn":
            return {"padded": padded(task, tags, tags_loss)}
        case "rae":
            return {"padded": padded(task, merges, merges_loss)}
        case "tree_rae":
            return trees(task, lambda w, word: w["embedding"][word], tree_rae.code)
        case "lstm" | "nasrnn":
            return {"padded": classified(task, masked.lstm_scores if task.name == "lstm" else masked.nasrnn_scores)}
        case "attention":
            return {"padded": continued(task)}
        case "seq2seq":
            return {"padded": translated(task)}
        case "blockdrop" | "skipnet":
            return {"masked": images(task)}
    return {}


def cross_entropy(scores: Any, label: Any) -> Any:
    """That of each example."""
    return -jnp.take_along_axis(jax.nn.log_softmax(scores), label[..., None], -1)[..., 0]


# Trees


def trees(task: Task, leaf: Callable[..., Any], compose: Callable[..., Any]) -> dict[str, ByHand]:
    """Level by level, in rows of several widths."""
    labels, host = jnp.asarray(task.labels), arrays([example.x for example in task.examples])

    def predict(w: Any, plan: by_hand.Plan) -> Any:
        state = by_hand.states(w, plan, leaf, compose)
        return jax.tree.leaves(state)[0][plan.root] @ w["head"] + w["head_bias"]

    def loss(w: Any, plan: by_hand.Plan) -> Any:
        return jnp.mean(cross_entropy(predict(w, plan), labels))

    plans = {width: jax.device_put(by_hand.plan(host, width)) for width in ROWS}
    return {f"rows of {k}": _ready(predict, loss, plan, 1 + len(plan.left)) for k, plan in plans.items()}


def mv_compose(w: Any, left: Any, right: Any) -> Any:
    """The vector and the matrix of a node of an MV-RNN."""
    (a, first), (b, second) = left, right
    vector = jnp.tanh(jnp.concatenate([b @ first, a @ second]) @ w["compose"] + w["bias"])
    return vector, jnp.concatenate([first, second]).T @ w["compose_matrix"]


def arrays(examples: Sequence[Any]) -> Trees:
    """Trees of objects as arrays [trees, nodes]; the root comes first, parents before children."""
    tables = [_table(tree) for tree in examples]
    found = np.full((3, len(tables), max(map(len, tables))), -1, np.int32)
    for k, table in enumerate(tables):
        found[:, k, : len(table)] = np.transpose(table)
    left, right, word = found
    return Trees(left, right, np.maximum(word, 0), np.zeros_like(left), np.zeros(left.shape, np.float32))


def _table(tree: Any) -> list[tuple[int, int, int]]:
    """Rows of left, right and word."""
    rows: list[tuple[int, int, int]] = []

    def add(node: Any) -> int:
        me = len(rows)
        rows.append((-1, -1, -1))
        if isinstance(node, tree_lstm.Word | mv_rnn.Word | tree_rae.Word):
            rows[me] = (-1, -1, node.index)
        else:
            left = add(node.left)
            rows[me] = (left, add(node.right), -1)
        return me

    add(tree)
    return rows


# Sentences


def padded(task: Task, predict: Callable[..., Any], loss: Callable[..., Any]) -> ByHand:
    """All sentences as long as the longest."""
    words = _filled([example.x for example in task.examples])
    lengths = np.array([len(example.x) for example in task.examples], np.int32)
    labels = [example.label for example in task.examples]
    label = _filled(labels) if isinstance(labels[0], list) else np.asarray(labels)
    given = jax.device_put((words, lengths, label))
    return _ready(predict, loss, given, words.shape[1])


def _filled(lists: Sequence[Sequence[int]]) -> np.ndarray:
    """int32[examples, longest], with zeros behind the ends."""
    found = np.zeros((len(lists), max(map(len, lists))), np.int32)
    for k, some in enumerate(lists):
        found[k, : len(some)] = some
    return found


def tags(w: Any, given: Any) -> Any:
    """The scores of each word by a bidirectional RNN, [sentences, longest, tags]; behind an end they say nothing."""
    words, lengths, _ = given
    vectors = jnp.swapaxes(w["embedding"][words], 0, 1)
    inside = jnp.arange(len(vectors))[:, None] < lengths

    def read(cell: Any, reverse: bool) -> Any:
        def step(h: Any, now: Any) -> Any:
            x, here = now
            h = jnp.where(here[:, None], jnp.tanh(x + h @ cell["state"]), h)
            return h, h

        start = jnp.zeros((len(lengths), len(cell["bias"])))
        return jax.lax.scan(step, start, (vectors @ cell["input"] + cell["bias"], inside), reverse=reverse)[1]

    both = jnp.concatenate([read(w["forward"], False), read(w["backward"], True)], -1)
    return jnp.swapaxes(both @ w["head"] + w["head_bias"], 0, 1)


def tags_loss(w: Any, given: Any) -> Any:
    """The mean of the sentences' losses."""
    words, lengths, label = given
    each = jnp.where(jnp.arange(words.shape[1]) < lengths[:, None], cross_entropy(tags(w, given), label), 0)
    return jnp.mean(jnp.sum(each, 1) / lengths)


def merges(w: Any, given: Any) -> Any:
    """The scores of a recursive autoencoder, and the errors of all merges: each sentence merges two in a step."""
    words, lengths, _ = given
    error = jax.vmap(partial(rae.error, w))
    places = jnp.arange(words.shape[1])

    def step(parts: Any, left: Any, total: Any) -> Any:
        errors = jnp.where(places[:-1] < left - 1, error(parts[:-1], parts[1:]), jnp.inf)
        best = jnp.argmin(errors)
        merged = rae.code(w, parts[best], parts[jnp.minimum(best + 1, len(parts) - 1)])
        behind = jnp.roll(parts, -1, 0)
        after = jnp.where((places > best)[:, None], behind, parts).at[best].set(merged)
        return jnp.where(left > 1, after, parts), left - (left > 1), total + jnp.where(left > 1, errors[best], 0)

    def steps(state: Any, _: None) -> Any:
        return jax.vmap(step)(*state), None

    start = w["embedding"][words], lengths, jnp.zeros(len(words))
    parts, _, total = jax.lax.scan(steps, start, None, length=words.shape[1] - 1)[0]
    return parts[:, 0] @ w["head"] + w["head_bias"], total


def merges_loss(w: Any, given: Any) -> Any:
    """The mean of the sentences' losses."""
    scores, total = merges(w, given)
    return jnp.mean(0.1 * total + cross_entropy(scores, given[2]))


def classified(task: Task, scores: Callable[..., Any]) -> ByHand:
    """Sentences of one class each, from the function for one sentence that is padded."""

    def predict(w: Any, given: Any) -> Any:
        return jax.vmap(partial(scores, w))(*given[:2])

    return padded(task, predict, lambda w, given: jnp.mean(cross_entropy(predict(w, given), given[2])))


def continued(task: Task) -> ByHand:
    """Attention: one loop over the places of the longest sentence."""
    prompts = [example.x for example in task.examples]
    whole = _filled([[*example.x.words, *example.label] for example in task.examples])
    words = _filled([prompt.words for prompt in prompts])
    lengths = np.array([len(prompt.words) for prompt in prompts], np.int32)
    totals = lengths + np.array([prompt.more for prompt in prompts], np.int32)

    def predict(w: Any, given: Any) -> Any:
        words, lengths, _, totals = given
        return jax.vmap(partial(masked.continued, w, longest=whole.shape[1]))(words, lengths, totals)

    def loss(w: Any, given: Any) -> Any:
        _, lengths, whole, totals = given
        return jnp.mean(jax.vmap(partial(masked.attention_loss, w))(whole, lengths, totals))

    return _ready(predict, loss, jax.device_put((words, lengths, whole, totals)), whole.shape[1])


def translated(task: Task) -> ByHand:
    """Sequence to sequence: a loop over the words of the longest sentence, and one until all translations are done."""
    count = lambda rows: np.array([len(row) for row in rows], np.int32)  # noqa: E731
    words, labels = [example.x for example in task.examples], [example.label for example in task.examples]
    given = jax.device_put((_filled(words), count(words), _filled(labels), count(labels)))

    def predict(w: Any, given: Any) -> Any:
        return jax.vmap(partial(masked.translated, w))(*given[:2])

    def loss(w: Any, given: Any) -> Any:
        return jnp.mean(jax.vmap(partial(masked.seq2seq_loss, w))(*given))

    found = _ready(predict, loss, given, 0)
    written = np.max(np.sum(np.asarray(found.predict(task.weights)) >= 0, 1))
    return replace(found, steps=int(len(given[0][0]) + min(written + 1, seq2seq.MOST)))


def images(task: Task) -> ByHand:
    """All blocks for all images, with masks."""
    scores = masked.blockdrop_scores if task.name == "blockdrop" else masked.skipnet_scores

    def predict(w: Any, given: Any) -> Any:
        return jax.vmap(partial(scores, w))(given[0])

    def loss(w: Any, given: Any) -> Any:
        return jnp.mean(cross_entropy(predict(w, given), given[1]))

    stages = task.weights["stages"]
    blocks = sum(len(stage["blocks"] if isinstance(stage, dict) else stage) for stage in stages)
    return _ready(predict, loss, jax.device_put((task.inputs, np.asarray(task.labels))), blocks)


def shown(task: Task, found: Any) -> np.ndarray:
    """The numbers of the examples in a row, without those behind the ends of sentences."""
    if isinstance(found, tuple):
        found = found[0]
    if task.name in ("attention", "seq2seq"):
        return np.asarray(found)[np.asarray(found) >= 0]
    if isinstance(task.examples[0].label, list):
        return np.concatenate(
            [np.asarray(row[: len(ex.x)]).ravel() for row, ex in zip(found, task.examples, strict=True)]
        )
    return np.asarray(found).ravel()


def _ready(predict: Callable[..., Any], loss: Callable[..., Any], given: Any, steps: int) -> ByHand:
    """The two functions compiled, with what was made beforehand."""
    forward, slope = jax.jit(predict), jax.jit(jax.value_and_grad(loss))
    return ByHand(lambda w: forward(w, given), lambda w: slope(w, given), steps)
