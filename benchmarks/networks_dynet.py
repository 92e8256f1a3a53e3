"""Networks of `examples.networks` in DyNet 2.2, with its automatic batching; a script for an environment without JAX.

`build/dynet/bin/python benchmarks/networks_dynet.py FOLDER --autobatch 1 --repeats 5`: the folder holds `weights.npz`
and `task.json`, as `benchmarks.networks` writes them; what is measured goes to `dynet.json` there.

An example is a generator that yields where the network has to know a number. All examples go on to there, their
questions are computed together, and they go on: so DyNet's batches are those of all examples, also where it has to
decide.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import dynet_config
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path)
parser.add_argument("--autobatch", type=int, default=1)
parser.add_argument("--repeats", type=int, default=5)
parser.add_argument("--count", action="store_true", help="print every batch")
options = parser.parse_args()
dynet_config.set(mem=1024, autobatch=options.autobatch, profiling=2 if options.count else 0, random_seed=1)

import dynet as dy  # noqa: E402

LAYERS, WIDTH, SURE, SIBLINGS = 12, 32, 0.5, 3  # those of the networks


class Weights:
    """The arrays of a network as parameters; matrices act from the left here."""

    TABLES = ("embedding", "vectors", "matrices")

    def __init__(self, arrays):
        self.model = dy.ParameterCollection()
        self.values = {}
        for name, array in arrays.items():
            array = np.asarray(array, np.float32)
            if name in self.TABLES:  # DyNet transposes matrices of a table by itself
                self.values[name] = self.model.lookup_parameters_from_numpy(array)
            else:
                self.values[name] = self.model.parameters_from_numpy(np.ascontiguousarray(array.T))

    def __getitem__(self, name):
        return self.values[name]

    def layer(self, x, weight, bias):
        """A product and a sum."""
        return dy.affine_transform([self[bias], self[weight], x])

    def head(self, x):
        """A number for each class."""
        return self.layer(x, "head", "head_bias")


def parts(z, count):
    """Pieces of equal length."""
    size = z.dim()[0][0] // count
    return [dy.pick_range(z, k * size, (k + 1) * size) for k in range(count)]


def tree_lstm(w, tree):
    """The binary TreeLSTM."""

    def encode(node):
        if isinstance(node, int):
            i, o, u = parts(w.layer(w["embedding"][node], "leaf", "leaf_bias"), 3)
            c = dy.cmult(dy.logistic(i), dy.tanh(u))
        else:
            (left, c_left), (right, c_right) = encode(node[0]), encode(node[1])
            i, f, g, o, u = parts(w.layer(dy.concatenate([left, right]), "node", "node_bias"), 5)
            c = dy.cmult(dy.logistic(i), dy.tanh(u))
            c = c + dy.cmult(dy.logistic(f), c_left) + dy.cmult(dy.logistic(g), c_right)
        return dy.cmult(dy.logistic(o), dy.tanh(c)), c

    return w.head(encode(tree)[0])
    yield


def mv_rnn(w, tree):
    """The MV-RNN."""

    def encode(node):
        if isinstance(node, int):
            return w["vectors"][node], w["matrices"][node]
        (a, first), (b, second) = encode(node[0]), encode(node[1])
        vector = dy.tanh(w.layer(dy.concatenate([first * b, second * a]), "compose", "bias"))
        both = dy.concatenate([dy.transpose(first), dy.transpose(second)])
        return vector, w["compose_matrix"] * both

    return w.head(encode(tree)[0])
    yield


def birnn(w, words):
    """The bidirectional RNN."""

    def read(side, vectors):
        h, states = dy.zeros(w["head"].shape()[1] // 2), []
        for x in vectors:
            weights = [w[f"{side}.bias"], w[f"{side}.input"], x, w[f"{side}.state"], h]
            h = dy.tanh(dy.affine_transform(weights))
            states.append(h)
        return states

    vectors = [w["embedding"][word] for word in words]
    before, after = read("forward", vectors), read("backward", vectors[::-1])[::-1]
    return dy.concatenate([w.head(dy.concatenate([a, b])) for a, b in zip(before, after, strict=True)])
    yield


def nested_rnn(w, counts):
    """The RNN in a GRU."""
    h = w["start"]
    for count in counts:
        x = h
        for _ in range(count):
            x = dy.tanh(w.layer(x, "inner", "inner_bias"))
        z, r = parts(dy.logistic(w.layer(dy.concatenate([x, h]), "gates", "gates_bias")), 2)
        new = dy.tanh(w.layer(dy.concatenate([x, dy.cmult(r, h)]), "new", "new_bias"))
        h = dy.cmult(z, h) + new - dy.cmult(z, new)
    return w.head(h)
    yield


def stack_rnn(w, words):
    """The shift-reduce parser."""
    h, stack, place = dy.zeros(w["history_bias"].shape()[0]), [], 0
    while place < len(words) or len(stack) > 1:
        shifts = len(stack) < 2
        if not shifts and place < len(words):
            shifts = int(np.argmax((yield w.layer(h, "action", "action_bias")))) == 0
        if shifts:
            stack.append(w["embedding"][words[place]])
            place += 1
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(dy.tanh(w.layer(dy.concatenate([left, right]), "reduce", "reduce_bias")))
        h = dy.tanh(w.layer(dy.concatenate([h, stack[-1]]), "history", "history_bias"))
    return w.head(h)


def drnn(w, seed):
    """The doubly recurrent network: a queue of nodes instead of recursion, so that all that can are asked together."""
    vector, levels = seed
    root = dy.tanh(w["root"] * dy.inputVector(vector))
    zero = dy.zeros(w["up_bias"].shape()[0])
    wave, said = [(root, zero, levels - 1, 0)], []
    while wave:
        states = []
        for parent, sibling, _, _ in wave:
            up = dy.tanh(w.layer(parent, "up", "up_bias"))
            across = dy.tanh(w.layer(sibling, "across", "across_bias"))
            states.append(dy.tanh(w["join"] * dy.concatenate([up, across])))
        said += [w.head(h) for h in states]
        answers = yield dy.concatenate([w.layer(h, "stop", "stop_bias") for h in states])
        following = []
        for k, (h, (parent, _, levels, more)) in enumerate(zip(states, wave, strict=True)):
            if answers[2 * k] > 0 and levels > 0:
                following.append((h, zero, levels - 1, SIBLINGS - 1))
            if answers[2 * k + 1] > 0 and more > 0:
                following.append((parent, h, levels, more - 1))
        wave = following
    return dy.esum(said) * (1 / len(said))


def berxit(w, words):
    """The transformer with early exit; a word is a column."""

    def normal(x):
        hidden, length = x.dim()[0]
        x = x - dy.reshape(dy.mean_dim(x, [0], False), (1, length))
        variance = dy.reshape(dy.mean_dim(dy.square(x), [0], False), (1, length))
        return dy.cdiv(x, dy.sqrt(variance + 1e-5))

    x = dy.concatenate_cols([w["embedding"][word] for word in words])
    hidden, length = x.dim()[0]
    heads = hidden // min(WIDTH, hidden)
    width = hidden // heads
    for _ in range(LAYERS):
        attended, projected = w["attend"] * x, []
        for k in range(heads):
            # The product gives a head its queries, keys and values side by side.
            q, key, v = (dy.pick_range(attended, (3 * k + p) * width, (3 * k + p + 1) * width) for p in range(3))
            projected.append(v * dy.softmax(dy.transpose(key) * q * width**-0.5))
        x = normal(x + w["project"] * dy.concatenate(projected))
        up = dy.colwise_add(w["up"] * x, w["up_bias"])
        up = dy.cmult(up, dy.tanh((up + dy.cube(up) * 0.044715) * 0.7978845608) + 1) * 0.5
        x = normal(x + dy.colwise_add(w["down"] * up, w["down_bias"]))
        scores = w.head(dy.pick(x, 0, dim=1))
        answer = yield dy.softmax(scores)
        if max(answer) > SURE:
            break
    return scores


NETWORKS = {f.__name__: f for f in (tree_lstm, mv_rnn, birnn, nested_rnn, stack_rnn, drnn, berxit)}


def step(w_run, answer):
    """Go on with an example; returns its question and its result, of which one is None."""
    try:
        return w_run.send(answer), None
    except StopIteration as ended:
        return None, ended.value


def graph(network, w, examples):
    """What the network says of each example, not all of it computed yet."""
    runs = [network(w, x) for x in examples]
    results, answers, live = [None] * len(runs), [None] * len(runs), list(range(len(runs)))
    while live:
        asked = {}
        for k in live:
            question, results[k] = step(runs[k], answers[k])
            if question is not None:
                asked[k] = question
        live = list(asked)
        if live:
            numbers = dy.concatenate(list(asked.values())).npvalue()
            sizes = np.cumsum([question.dim()[0][0] for question in asked.values()])[:-1]
            for k, answer in zip(live, np.split(numbers, sizes), strict=True):
                answers[k] = answer.tolist()
    return results


def predict(network, w, examples):
    """What the network says of all examples, in one row."""
    dy.renew_cg()
    return dy.concatenate(graph(network, w, examples)).npvalue()


def train(network, w, examples, labels):
    """The mean loss, and its gradient, which stays in the parameters."""
    dy.renew_cg()
    losses = []
    for scores, label in zip(graph(network, w, examples), labels, strict=True):
        if isinstance(label, list):
            rows = parts(scores, len(label))
            of_tags = [dy.pickneglogsoftmax(row, tag) for row, tag in zip(rows, label, strict=True)]
            surprise = dy.average(of_tags)
        else:
            surprise = dy.pickneglogsoftmax(scores, label)
        losses.append(surprise)
    mean = dy.average(losses)
    value = mean.value()
    mean.backward()
    for parameter in w.model.parameters_list() + w.model.lookup_parameters_list():
        parameter.scale_gradient(0)
    return value


def timed(call, repeats):
    """The median of CPU seconds, after a call that does not count."""
    call()
    found = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return statistics.median(found)


def main():
    """Measure."""
    task = json.loads((options.folder / "task.json").read_text("utf-8"))
    w, network = Weights(np.load(options.folder / "weights.npz")), NETWORKS[task["network"]]
    said = predict(network, w, task["examples"])
    if options.count:
        return
    found = {"said": said.tolist(), "inference": timed(lambda: predict(network, w, task["examples"]), options.repeats)}
    if task["train"]:
        call = lambda: train(network, w, task["examples"], task["labels"])  # noqa: E731
        found |= {"loss": call(), "training": timed(call, options.repeats)}
    (options.folder / "dynet.json").write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main()
