"""Cocktailer's networks in TorchScript, for one example; the recursive one stays in Python, which TorchScript needs."""

# No postponed annotations: TorchScript reads those of its functions.

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from examples.networks import in_torch, seq2seq

END, MOST = seq2seq.END, seq2seq.MOST


def cell_step(weight: Tensor, bias: Tensor, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """A step of an LSTM."""
    i, f, o, u = torch.chunk(torch.cat([x, h]) @ weight + bias, 4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(u)
    return torch.sigmoid(o) * torch.tanh(c), c


def lstm(
    words: list[int], table: Tensor, weights: list[Tensor], biases: list[Tensor], head: Tensor, head_bias: Tensor
) -> Tensor:
    """The LSTM of several layers."""
    hs = [torch.zeros_like(table[0]) for _ in range(len(weights))]
    cs = [torch.zeros_like(table[0]) for _ in range(len(weights))]
    x = table[0]
    for word in words:
        x = table[word]
        for k in range(len(weights)):
            h, c = cell_step(weights[k], biases[k], x, hs[k], cs[k])
            hs[k] = h
            cs[k] = c
            x = h
    return x @ head + head_bias


def nasrnn(
    words: list[int], table: Tensor, entry: Tensor, state: Tensor, bias: Tensor, head: Tensor, head_bias: Tensor
) -> Tensor:
    """The network with the cell that was searched for."""
    h = torch.zeros_like(table[0])
    c = torch.zeros_like(table[0])
    for word in words:
        xs = torch.chunk(table[word] @ entry + bias, 8)
        hs = torch.chunk(h @ state, 8)
        a = torch.tanh(torch.sigmoid(xs[0] + hs[0]) * torch.relu(xs[1] + hs[1]))
        b = torch.tanh(torch.sigmoid(xs[2] + hs[2]) + torch.relu(xs[3] * hs[3]))
        d = torch.tanh(torch.tanh(xs[4] + hs[4]) * torch.sigmoid(xs[5] + hs[5]))
        e = torch.sigmoid(torch.tanh(xs[6] + hs[6]) + torch.sigmoid(xs[7] + hs[7]))
        c = torch.tanh(a + c) * b
        h = torch.tanh(c * torch.tanh(d + e))
    return h @ head + head_bias


def attention(
    words: list[int],
    more: int,
    table: Tensor,
    places: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    project: Tensor,
    head: Tensor,
    head_bias: Tensor,
) -> list[Tensor]:
    """The decoder with attention."""
    keys: list[Tensor] = []
    values: list[Tensor] = []
    said: list[Tensor] = []
    scores = head_bias
    width = float(key.shape[2])
    for place in range(len(words) + more):
        if place < len(words):
            x = table[words[place]]
        else:
            said.append(torch.argmax(scores))
            x = table[said[-1]]
        x = x + places[place]
        keys.append(x @ key)
        values.append(x @ value)
        seen = torch.einsum("hd,nhd->hn", x @ query, torch.stack(keys)) / width**0.5
        mixed = torch.einsum("hn,nhd->hd", torch.softmax(seen, -1), torch.stack(values))
        scores = torch.tanh(x + mixed.reshape(-1) @ project) @ head + head_bias
    return said


def translation(
    words: list[int],
    table: Tensor,
    encoder: Tensor,
    encoder_bias: Tensor,
    target: Tensor,
    decoder: Tensor,
    decoder_bias: Tensor,
    head: Tensor,
    head_bias: Tensor,
    end: int,
    most: int,
) -> list[Tensor]:
    """Sequence to sequence."""
    h = torch.zeros_like(table[0])
    c = torch.zeros_like(table[0])
    for word in words:
        h, c = cell_step(encoder, encoder_bias, table[word], h, c)
    said: list[Tensor] = []
    x = target[end]
    going = True
    while going and len(said) < most:
        h, c = cell_step(decoder, decoder_bias, x, h, c)
        best = torch.argmax(h @ head + head_bias)
        going = int(best) != end
        if going:
            said.append(best)
            x = target[best]
    return said


def layer(x: Tensor, w: list[Tensor], stride: int) -> Tensor:
    """A convolution of [1, channels, rows, columns], padded as XLA pads it, with scale and shift."""
    size = w[0].shape[2]
    missing = max(0, ((x.shape[2] + stride - 1) // stride - 1) * stride + size - x.shape[2])
    before = missing // 2
    x = functional.pad(x, [before, missing - before, before, missing - before])
    return functional.conv2d(x, w[0], stride=stride) * w[1] + w[2]


def added(x: Tensor, short: Tensor, block: list[list[Tensor]], stride: int) -> Tensor:
    """A residual block that runs."""
    for k in range(len(block) - 1):
        x = torch.relu(layer(x, block[k], stride if k == 0 else 1))
    return torch.relu(short + layer(x, block[len(block) - 1], 1))


def shrunk(x: Tensor, channels: int, stride: int) -> Tensor:
    """Each second row and column, if that is the stride, and zeros in new channels."""
    return functional.pad(x[:, :, ::stride, ::stride], [0, 0, 0, 0, 0, channels - x.shape[1]])


def blockdrop(
    image: Tensor,
    policy: list[list[Tensor]],
    policy_head: Tensor,
    policy_bias: Tensor,
    first: list[Tensor],
    blocks: list[list[list[Tensor]]],
    head: Tensor,
    head_bias: Tensor,
) -> tuple[Tensor, int]:
    """BlockDrop."""
    x = image
    for k in range(len(policy)):
        x = torch.relu(layer(x, policy[k], 1 if k == 0 else 2))
    keep = torch.mean(x, (2, 3))[0] @ policy_head + policy_bias
    x = torch.relu(layer(image, first, 1))
    ran = 0
    for k in range(len(blocks)):
        channels = blocks[k][-1][2].shape[1]
        stride = 1 if x.shape[1] == channels else 2
        short = shrunk(x, channels, stride)
        if bool(keep[k] > 0):
            ran += 1
            x = added(x, short, blocks[k], stride)
        else:
            x = torch.relu(short)
    return torch.mean(x, (2, 3))[0] @ head + head_bias, ran


def skipnet(
    image: Tensor,
    first: list[Tensor],
    blocks: list[list[list[Tensor]]],
    sees: list[Tensor],
    strides: list[int],
    gate: list[Tensor],
    head: Tensor,
    head_bias: Tensor,
) -> tuple[Tensor, int]:
    """SkipNet."""
    x = torch.relu(layer(image, first, 2))
    h = torch.zeros_like(gate[2])
    c = torch.zeros_like(gate[2])
    ran = 0
    for k in range(len(blocks)):
        h, c = cell_step(gate[0], gate[1], torch.mean(x, (2, 3))[0] @ sees[k], h, c)
        short = shrunk(x, blocks[k][-1][2].shape[1], strides[k])
        if bool(h @ gate[2] + gate[3] > 0):
            ran += 1
            x = added(x, short, blocks[k], strides[k])
        else:
            x = short
    return torch.mean(x, (2, 3))[0] @ head + head_bias, ran


def call(name: str, w: Mapping[str, Any], examples: Sequence[Any]) -> Callable[[], list[Any]]:
    """A call that gives what the network says of all examples, one after the other."""
    torch.set_num_threads(1)
    t = in_torch.tensors(w)
    if name == "tree_rae":
        return _inferring(lambda x: in_torch.tree_rae(t, x), examples)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript has been superseded, but it is what the paper compares with
        return _inferring(_scripted(name, t), examples)


def _scripted(name: str, t: Any) -> Callable[[Any], Any]:
    last = t["head"], t["head_bias"]
    match name:
        case "lstm":
            lstm_ = torch.jit.script(lstm)
            weights, biases = [cell["weight"] for cell in t["cells"]], [cell["bias"] for cell in t["cells"]]
            return lambda x: lstm_(list(x), t["embedding"], weights, biases, *last)
        case "nasrnn":
            nasrnn_ = torch.jit.script(nasrnn)
            return lambda x: nasrnn_(list(x), t["embedding"], t["input"], t["state"], t["bias"], *last)
        case "attention":
            attention_ = torch.jit.script(attention)
            parts = [t[k] for k in ("embedding", "places", "query", "key", "value", "project")]
            return lambda x: attention_(list(x.words), x.more, *parts, *last)
        case "seq2seq":
            translation_ = torch.jit.script(translation)
            sides = [t["encoder"]["weight"], t["encoder"]["bias"], t["target"]]
            sides += [t["decoder"]["weight"], t["decoder"]["bias"]]
            return lambda x: translation_(list(x), t["embedding"], *sides, *last, END, MOST)
        case "blockdrop":
            blockdrop_, policy = torch.jit.script(blockdrop), t["policy"]
            layers = [_layer(each) for each in (policy["first"], *policy["layers"])]
            blocks = [[_layer(each) for each in part] for stage in t["stages"] for part in stage]
            given = (layers, policy["head"], policy["head_bias"], _layer(t["first"]), blocks)
            return lambda x: blockdrop_(_image(x), *given, *last)
    skipnet_, stages, gate = torch.jit.script(skipnet), t["stages"], t["gate"]
    blocks = [[_layer(each) for each in part] for stage in stages for part in stage["blocks"]]
    sees = [see for stage in stages for see in stage["see"]]
    strides = [2 if k == 0 and depth > 0 else 1 for depth, stage in enumerate(stages) for k in range(len(stage["see"]))]
    gates = [gate[k] for k in ("weight", "bias", "head", "head_bias")]
    return lambda x: skipnet_(_image(x), _layer(t["first"]), blocks, sees, strides, gates, *last)


def _layer(w: Any) -> list[Tensor]:
    channels = (1, -1, 1, 1)
    return [w["kernel"].permute(3, 2, 0, 1).contiguous(), w["scale"].reshape(channels), w["shift"].reshape(channels)]


def _image(x: Any) -> Tensor:
    return torch.as_tensor(np.asarray(x)).permute(2, 0, 1)[None]


def _inferring(f: Callable[[Any], Any], examples: Sequence[Any]) -> Callable[[], list[Any]]:
    def run() -> list[Any]:
        with torch.inference_mode():
            return [f(x) for x in examples]

    return run
