"""The networks as one writes them in PyTorch, which runs one example after the other and every operation by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from examples.networks import attention, berxit, drnn, lattice_lstm, nary_tree_lstm, seq2seq, two_types
from examples.networks.data import Example
from examples.networks.in_torch_images import blockdrop, skipnet

Weights = Any
State = tuple[Tensor, Tensor]


def lstm_leaf(w: Weights, word: int) -> State:
    """The state of a word."""
    i, o, u = (w["embedding"][word] @ w["leaf"] + w["leaf_bias"]).chunk(3)
    c = i.sigmoid() * u.tanh()
    return o.sigmoid() * c.tanh(), c


def lstm_node(w: Weights, name: str, left: State, right: State) -> State:
    """The state of a node of two parts."""
    i, f, g, o, u = (torch.cat([left[0], right[0]]) @ w[name] + w[f"{name}_bias"]).chunk(5)
    c = i.sigmoid() * u.tanh() + f.sigmoid() * left[1] + g.sigmoid() * right[1]
    return o.sigmoid() * c.tanh(), c


def head(w: Weights, h: Tensor) -> Tensor:
    """A number for each class."""
    return h @ w["head"] + w["head_bias"]


def tree_lstm(w: Weights, tree: Any) -> Tensor:
    """The binary TreeLSTM."""

    def encode(node: Any) -> State:
        if len(node) == 1:
            return lstm_leaf(w, node[0])
        return lstm_node(w, "node", encode(node.left), encode(node.right))

    return head(w, encode(tree)[0])


def nary_states(w: Weights, tree: nary_tree_lstm.Node) -> State:
    """The state of a node of the child-sum TreeLSTM."""
    x, states = w["embedding"][tree.word], [nary_states(w, child) for child in tree.children]
    below = sum((h for h, _ in states), torch.zeros_like(x))
    i, o, u = (x @ w["input"] + below @ w["below"] + w["bias"]).chunk(3)
    c = i.sigmoid() * u.tanh()
    for h, old in states:
        c = c + (x @ w["forget_input"] + h @ w["forget"] + w["forget_bias"]).sigmoid() * old
    return o.sigmoid() * c.tanh(), c


def nary(w: Weights, tree: nary_tree_lstm.Node) -> Tensor:
    """The child-sum TreeLSTM."""
    return head(w, nary_states(w, tree)[0])


def two_kinds(w: Weights, tree: Any) -> Tensor:
    """The TreeLSTM with two kinds of nodes."""

    def encode(node: Any) -> State:
        if isinstance(node, two_types.Word):
            return lstm_leaf(w, node.index)
        if isinstance(node, two_types.Clause):
            return lstm_node(w, "clause", encode(node.left), encode(node.right))
        (h, c), (other, _) = encode(node.head), encode(node.modifier)
        f, o, u = (torch.cat([h, other]) @ w["modified"] + w["modified_bias"]).chunk(3)
        c = f.sigmoid() * c + (1 - f.sigmoid()) * u.tanh()
        return o.sigmoid() * c.tanh(), c

    return head(w, encode(tree)[0])


def mv_rnn(w: Weights, tree: Any) -> Tensor:
    """The MV-RNN."""

    def encode(node: Any) -> State:
        if len(node) == 1:
            return w["vectors"][node[0]], w["matrices"][node[0]]
        (a, first), (b, second) = encode(node.left), encode(node.right)
        vector = (torch.cat([b @ first, a @ second]) @ w["compose"] + w["bias"]).tanh()
        return vector, torch.cat([first, second]).T @ w["compose_matrix"]

    return head(w, encode(tree)[0])


def birnn(w: Weights, words: Sequence[int]) -> list[Tensor]:
    """The bidirectional RNN."""

    def read(cell: Weights, vectors: Sequence[Tensor]) -> list[Tensor]:
        h, states = torch.zeros_like(cell["bias"]), []
        for x in vectors:
            h = (x @ cell["input"] + h @ cell["state"] + cell["bias"]).tanh()
            states.append(h)
        return states

    vectors = [w["embedding"][word] for word in words]
    before, after = read(w["forward"], vectors), read(w["backward"], vectors[::-1])[::-1]
    return [head(w, torch.cat(pair)) for pair in zip(before, after, strict=True)]


def stack_rnn(w: Weights, words: Sequence[int]) -> Tensor:
    """The shift-reduce parser."""
    h, stack, place = torch.zeros_like(w["history_bias"]), [], 0
    while place < len(words) or len(stack) > 1:
        shifts = len(stack) < 2
        if not shifts and place < len(words):
            shifts = int((h @ w["action"] + w["action_bias"]).argmax()) == 0
        if shifts:
            stack.append(w["embedding"][words[place]])
            place += 1
        else:
            right, left = stack.pop(), stack.pop()
            stack.append((torch.cat([left, right]) @ w["reduce"] + w["reduce_bias"]).tanh())
        h = (torch.cat([h, stack[-1]]) @ w["history"] + w["history_bias"]).tanh()
    return head(w, h)


def early_exit(w: Weights, words: np.ndarray) -> tuple[Tensor, int]:
    """The transformer with early exit."""

    def normal(x: Tensor) -> Tensor:
        return functional.layer_norm(x, x.shape[-1:])

    x = w["embedding"][torch.as_tensor(words)]
    length, hidden = x.shape
    heads = hidden // min(berxit.WIDTH, hidden)
    for depth in range(1, berxit.LAYERS + 1):  # noqa: B007 - it is returned
        q, k, v = (x @ w["attend"]).reshape(length, heads, -1).chunk(3, -1)
        seen = (torch.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
        x = normal(x + torch.einsum("hqk,khd->qhd", seen, v).reshape(length, hidden) @ w["project"])
        up = functional.gelu(x @ w["up"] + w["up_bias"], approximate="tanh")
        x = normal(x + up @ w["down"] + w["down_bias"])
        scores = head(w, x[0])
        if scores.softmax(0).max() > berxit.SURE:
            break
    return scores, depth


def nested_rnn(w: Weights, counts: Sequence[int]) -> Tensor:
    """The RNN in a GRU."""
    h = w["start"]
    for count in counts:
        x = h
        for _ in range(count):
            x = (x @ w["inner"] + w["inner_bias"]).tanh()
        z, r = (torch.cat([x, h]) @ w["gates"] + w["gates_bias"]).sigmoid().chunk(2)
        h = z * h + (1 - z) * (torch.cat([x, r * h]) @ w["new"] + w["new_bias"]).tanh()
    return head(w, h)


def top_down(w: Weights, seed: drnn.Seed) -> tuple[Tensor, int]:
    """The doubly recurrent network."""

    def grow(parent: Tensor, sibling: Tensor, levels: int, more: int) -> tuple[Tensor, int]:
        up = (parent @ w["up"] + w["up_bias"]).tanh()
        across = (sibling @ w["across"] + w["across_bias"]).tanh()
        h = (torch.cat([up, across]) @ w["join"]).tanh()
        said, nodes = head(w, h), 1
        below, after = h @ w["stop"] + w["stop_bias"]
        if below > 0 and levels > 0:
            some, number = grow(h, torch.zeros_like(h), levels - 1, drnn.SIBLINGS - 1)
            said, nodes = said + some, nodes + number
        if after > 0 and more > 0:
            some, number = grow(parent, h, levels, more - 1)
            said, nodes = said + some, nodes + number
        return said, nodes

    root = (torch.as_tensor(seed.vector) @ w["root"]).tanh()
    said, nodes = grow(root, torch.zeros_like(root), int(seed.levels) - 1, 0)
    return said / nodes, nodes


def rae(w: Weights, words: Sequence[int]) -> State:
    """The recursive autoencoder."""

    def code(left: Tensor, right: Tensor) -> Tensor:
        return (torch.cat([left, right]) @ w["code"] + w["code_bias"]).tanh()

    def error(left: Tensor, right: Tensor) -> Tensor:
        decoded = (code(left, right) @ w["decode"] + w["decode_bias"]).tanh()
        return ((decoded - torch.cat([left, right])) ** 2).sum()

    parts, total = [w["embedding"][word] for word in words], torch.tensor(0.0)
    while len(parts) > 1:
        errors = [error(left, right) for left, right in zip(parts, parts[1:], strict=False)]
        best = int(torch.stack(errors).argmin())
        total = total + errors[best]
        parts[best : best + 2] = [code(parts[best], parts[best + 1])]
    return head(w, parts[0]), total


def lattice(w: Weights, sentence: lattice_lstm.Sentence) -> Tensor:
    """The lattice LSTM."""
    h = c = torch.zeros_like(w["link_bias"])
    states: list[State] = []
    for character in sentence.characters:
        x = w["characters"][character.index]
        i, o, u = (torch.cat([x, h]) @ w["character"] + w["character_bias"]).chunk(3)
        i, o, u = i.sigmoid(), o.sigmoid(), u.tanh()
        weight, memory = i.exp(), i.exp() * u
        for jump in character.words:
            h_start, c_start = states[jump.start]
            gates = torch.cat([w["words"][jump.word], h_start]) @ w["word"] + w["word_bias"]
            gate, forget, new = gates.chunk(3)
            c_word = forget.sigmoid() * c_start + gate.sigmoid() * new.tanh()
            link = (torch.cat([x, c_word]) @ w["link"] + w["link_bias"]).sigmoid().exp()
            weight, memory = weight + link, memory + link * c_word
        c = memory / weight if character.words else (1 - i) * c + i * u
        h = o * c.tanh()
        states.append((h, c))
    return head(w, h)


def lstm_step(cell: Weights, x: Tensor, h: Tensor, c: Tensor) -> State:
    """A step of an LSTM."""
    i, f, o, u = (torch.cat([x, h]) @ cell["weight"] + cell["bias"]).chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * u.tanh()
    return o.sigmoid() * c.tanh(), c


def lstm(w: Weights, words: Sequence[int]) -> Tensor:
    """The LSTM of several layers."""
    start = x = torch.zeros_like(w["embedding"][0])
    states = [(start, start) for _ in w["cells"]]
    for word in words:
        x = w["embedding"][word]
        for layer, cell in enumerate(w["cells"]):
            states[layer] = lstm_step(cell, x, *states[layer])
            x = states[layer][0]
    return head(w, x)


def nasrnn(w: Weights, words: Sequence[int]) -> Tensor:
    """The network with the cell that was searched for."""
    h = c = torch.zeros_like(w["embedding"][0])
    for word in words:
        xs, hs = (w["embedding"][word] @ w["input"] + w["bias"]).chunk(8), (h @ w["state"]).chunk(8)
        a = ((xs[0] + hs[0]).sigmoid() * (xs[1] + hs[1]).relu()).tanh()
        b = ((xs[2] + hs[2]).sigmoid() + (xs[3] * hs[3]).relu()).tanh()
        d = ((xs[4] + hs[4]).tanh() * (xs[5] + hs[5]).sigmoid()).tanh()
        e = ((xs[6] + hs[6]).tanh() + (xs[7] + hs[7]).sigmoid()).sigmoid()
        c = (a + c).tanh() * b
        h = (c * (d + e).tanh()).tanh()
    return head(w, h)


class Decoder:
    """The decoder with attention: what it has seen, and the scores of what follows."""

    def __init__(self, w: Weights) -> None:
        self.w, self.keys, self.values, self.scores = w, [], [], w["head_bias"]

    def read(self, word: Any) -> None:
        """See one more word."""
        w = self.w
        x = w["embedding"][word] + w["places"][len(self.keys)]
        self.keys.append(x @ w["key"])
        self.values.append(x @ w["value"])
        seen = torch.einsum("hd,nhd->hn", x @ w["query"], torch.stack(self.keys)) / w["key"].shape[-1] ** 0.5
        mixed = torch.einsum("hn,nhd->hd", seen.softmax(-1), torch.stack(self.values))
        self.scores = head(w, (x + mixed.reshape(-1) @ w["project"]).tanh())


def continued(w: Weights, prompt: attention.Prompt) -> list[Tensor]:
    """The decoder with attention."""
    decoder, said = Decoder(w), []
    for word in prompt.words:
        decoder.read(word)
    for _ in range(prompt.more):
        said.append(decoder.scores.argmax())
        decoder.read(said[-1])
    return said


def read_all(w: Weights, words: Sequence[int]) -> State:
    """The state of an encoder behind a sentence."""
    h = c = torch.zeros_like(w["embedding"][0])
    for word in words:
        h, c = lstm_step(w["encoder"], w["embedding"][word], h, c)
    return h, c


def translated(w: Weights, words: Sequence[int]) -> list[Tensor]:
    """Sequence to sequence."""
    (h, c), said = read_all(w, words), []
    word: Any = seq2seq.END
    while len(said) < seq2seq.MOST:
        h, c = lstm_step(w["decoder"], w["target"][word], h, c)
        word = head(w, h).argmax()
        if int(word) == seq2seq.END:
            break
        said.append(word)
    return said


def forced(name: str, w: Weights, example: Example) -> Tensor:
    """The scores of each word of a sentence that is given."""
    rows = []
    if name == "attention":
        decoder = Decoder(w)
        for word in example.x.words:
            decoder.read(word)
        for word in example.label:
            rows.append(decoder.scores)
            decoder.read(word)
        return torch.stack(rows)
    (h, c), before = read_all(w, example.x), seq2seq.END
    for word in example.label:
        h, c = lstm_step(w["decoder"], w["target"][before], h, c)
        rows.append(head(w, h))
        before = word
    return torch.stack(rows)


def tree_rae(w: Weights, tree: Any) -> Tensor:
    """The recursive autoencoder over a given tree."""

    def encode(node: Any) -> Tensor:
        if len(node) == 1:
            return w["embedding"][node[0]]
        return (torch.cat([encode(node.left), encode(node.right)]) @ w["code"] + w["code_bias"]).tanh()

    return head(w, encode(tree))


PREDICT: dict[str, Callable[[Weights, Any], Any]] = {
    "tree_lstm": tree_lstm,
    "nary_tree_lstm": nary,
    "birnn": birnn,
    "stack_rnn": stack_rnn,
    "mv_rnn": mv_rnn,
    "berxit": early_exit,
    "nested_rnn": nested_rnn,
    "drnn": top_down,
    "two_types": two_kinds,
    "rae": rae,
    "lattice_lstm": lattice,
    "lstm": lstm,
    "nasrnn": nasrnn,
    "attention": continued,
    "seq2seq": translated,
    "blockdrop": blockdrop,
    "skipnet": skipnet,
    "tree_rae": tree_rae,
}


def loss(name: str, w: Weights, example: Example) -> Tensor:
    """That of one example."""
    if name in ("attention", "seq2seq"):
        return functional.cross_entropy(forced(name, w, example), torch.tensor(example.label))
    said = PREDICT[name](w, example.x)
    if name == "birnn":
        return functional.cross_entropy(torch.stack(said), torch.tensor(example.label))
    scores = said[0] if isinstance(said, tuple) else said
    surprise = functional.cross_entropy(scores, torch.tensor(example.label))
    return surprise + 0.1 * said[1] if name == "rae" else surprise


def tensors(w: Weights, learnt: bool = False) -> Weights:
    """Weights as PyTorch has them."""
    return jax.tree.map(lambda leaf: torch.tensor(np.asarray(leaf), requires_grad=learnt), w)


def predictions(name: str, w: Weights, examples: Sequence[Example]) -> list[Any]:
    """What the network says of each example, as arrays of NumPy."""
    with torch.inference_mode():
        said = [PREDICT[name](w, example.x) for example in examples]
    return jax.tree.map(np.asarray, said)


def gradient(name: str, w: Weights, examples: Sequence[Example]) -> tuple[float, Weights]:
    """The mean loss, and its gradient."""
    learnt = tensors(w, learnt=True)
    value = torch.stack([loss(name, learnt, example) for example in examples]).mean()
    value.backward()
    zero = np.zeros_like
    slope = jax.tree.map(lambda leaf: zero(leaf.detach()) if leaf.grad is None else leaf.grad.numpy(), learnt)
    return float(value.detach()), slope
