"""Just-in-time dynamic batching (Zha et al., 2018): table 2, a TreeLSTM on pairs of sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.common import interleaved_cpu_medians
from benchmarks.papers import relatedness
from benchmarks.papers.figure import Figure, Measured, Number, Paper, Row
from examples.networks import check, data

COMPILED, ASKED, ALONE = "compiler", "f.ask", "compiled, one at a time"
NODES, PLAIN = "jitted nodes, one at a time", "PyTorch, one at a time"
HIDDEN, BATCH, NO_TORCH = 150, 256, "PyTorch is not installed"


def packed(some: Any) -> Any:
    """Pairs as one argument."""
    return data.objects(some)


def inference(w: Any, some: list[relatedness.Pair]) -> dict[str, Callable[[], Any]]:
    """All ways to grade the pairs."""
    together, alone = packed(some), [packed([pair]) for pair in some]
    return {
        COMPILED: lambda: relatedness.predict(w, together),
        ASKED: lambda: relatedness.asked(w, some),
        ALONE: lambda: [relatedness.predict(w, one) for one in alone],
        NODES: lambda: relatedness.node_by_node(w, some),
    }


def training(w: Any, some: list[relatedness.Pair], shares: Any) -> dict[str, Callable[[], Any]]:
    """All ways to have the gradient of the mean loss."""
    slope = jax.value_and_grad(lambda w, *given: jnp.mean(relatedness.loss(w, *given)))
    together = packed(some)
    alone = [(packed([pair]), shares[k : k + 1]) for k, pair in enumerate(some)]
    return {COMPILED: lambda: slope(w, together, shares), ALONE: lambda: [slope(w, *one) for one in alone]}


def agree(found: Mapping[str, Any], what: str) -> None:
    """Stop if two ways grade pairs differently."""
    first = np.asarray(found[COMPILED])
    for way, grades in found.items():
        other = np.concatenate([np.asarray(one) for one in grades]) if way == ALONE else np.asarray(grades)
        np.testing.assert_allclose(other, first, rtol=check.RTOL, atol=check.ATOL, err_msg=f"{what}: {way}")


def speed(of: str, paper: str, seconds: Mapping[str, float], count: int, why: str) -> list[Row]:
    """A row against each kind of one example at a time."""
    more: dict[str, Number] = {f"{way}, pairs/s": count / some for way, some in seconds.items()}
    rows = []
    for way in (COMPILED, ASKED):
        here = seconds[PLAIN] / seconds[way] if way in seconds and PLAIN in seconds else None
        reason = why if way == COMPILED or way in seconds else "`f.ask` gives values and no gradients"
        others = [other for other in (ALONE, NODES) if other in seconds and way in seconds]
        over = {f"over {other}": seconds[other] / seconds[way] for other in others}
        rows.append(Row(f"{of}, {way}", paper, here, over | (more if way == COMPILED else {}), reason))
    return rows


def measured(hidden: int, batch: int, nodes: float, repeats: int) -> Measured:
    """Table 2."""
    w, (some, shares) = relatedness.weights(hidden), relatedness.pairs(batch, nodes)
    grading, learning, why = inference(w, some), training(w, some, shares), "" if check.has_torch() else NO_TORCH
    if check.has_torch():
        grading[PLAIN], learning[PLAIN] = relatedness.in_torch(w, some, shares)
    agree({way: call() for way, call in grading.items()}, "inference")
    if check.has_torch():
        check.compare(learning[PLAIN](), learning[COMPILED]()[1], "gradient")
    grading_seconds = interleaved_cpu_medians(grading, repeats)
    learning_seconds = interleaved_cpu_medians(learning, repeats)
    return Measured(
        [
            *speed("inference", "6.25", grading_seconds, batch, why),
            *speed("training", "5.96", learning_seconds, batch, why),
        ]
    )


PAPER = Paper(
    "Just-in-Time Dynamic-Batching",
    "Zha, Jiang, Lin, Zhang, Zhang, NIPS 2018",
    (
        Figure(
            "relatedness",
            "Table 2",
            "a TreeLSTM on pairs of sentences (SICK), batch 256, over one example at a time",
            "50.46 pairs a second one at a time and 315.54 in batches for inference (6.25 times), 33.77 and 201.11 "
            "for training (5.96 times), in MXNet on a c4.8xlarge (Intel Xeon E5-2666 v3).",
            "Pairs of random trees of the sizes that table 1 of the paper gives: 16.5 nodes in the mean, up to nine "
            "children. The paper names no hidden size; here 150, as Tai et al. (2015). CPU seconds of one thread. "
            "Its framework ran operation by operation when it ran one example, so the ratio is that over PyTorch; "
            "`compiled, one at a time` calls the compiled function for each pair. `jitted nodes` walks the trees by "
            "Python and calls JAX for each node. With `f.ask` plain Python walks the trees too, each pair in a fiber "
            "of `pcbatch.gather`, and asks for nodes. A quick run has 16 pairs, 8 nodes and size 32.",
            "over one at a time",
            lambda quick: measured(32, 16, 8.0, 3) if quick else measured(HIDDEN, BATCH, relatedness.NODES, 7),
        ),
    ),
)
