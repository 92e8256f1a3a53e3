"""The residual networks of one image as one writes them in PyTorch; for `in_torch`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from examples.networks.skipnet import GATE

Weights = Any


def layer(w: Weights, x: Tensor, stride: int = 1) -> Tensor:
    """A convolution of [rows, columns, channels], padded as XLA pads it, with scale and shift."""
    size, rows = w["kernel"].shape[0], x.shape[0]
    missing = max(0, (-(-rows // stride) - 1) * stride + size - rows)
    before, after = missing // 2, missing - missing // 2
    padded = functional.pad(x.permute(2, 0, 1), (before, after, before, after))
    found = functional.conv2d(padded[None], w["kernel"].permute(3, 2, 0, 1), stride=stride)[0]
    return found.permute(1, 2, 0) * w["scale"] + w["shift"]


def added(w: Weights, x: Tensor, stride: int) -> Tensor:
    """The part of a block that is added."""
    for k, each in enumerate(w[:-1]):
        x = layer(each, x, stride if k == 0 else 1).relu()
    return layer(w[-1], x)


def shrink(x: Tensor, channels: int, stride: int) -> Tensor:
    """Each second row and column, if that is the stride, and zeros in new channels."""
    return functional.pad(x[::stride, ::stride], (0, channels - x.shape[-1]))


def blockdrop(w: Weights, image: Any) -> tuple[Tensor, int]:
    """BlockDrop."""
    image = torch.as_tensor(image)
    x = layer(w["policy"]["first"], image).relu()
    for each in w["policy"]["layers"]:
        x = layer(each, x, 2).relu()
    keep = (x.mean((0, 1)) @ w["policy"]["head"] + w["policy"]["head_bias"]).tolist()
    ran = sum(kept > 0 for kept in keep)
    x = layer(w["first"], image).relu()
    for each in (part for stage in w["stages"] for part in stage):
        channels = each[-1]["shift"].shape[0]
        stride = 1 if x.shape[-1] == channels else 2
        short = shrink(x, channels, stride)
        x = (short + added(each, x, stride) if keep.pop(0) > 0 else short).relu()
    return x.mean((0, 1)) @ w["head"] + w["head_bias"], ran


def skipnet(w: Weights, image: Any) -> tuple[Tensor, int]:
    """SkipNet."""
    x, gate, ran = layer(w["first"], torch.as_tensor(image), 2).relu(), w["gate"], 0
    h = c = torch.zeros(GATE)
    for depth, stage in enumerate(w["stages"]):
        for number, (each, see) in enumerate(zip(stage["blocks"], stage["see"], strict=True)):
            i, f, o, u = (torch.cat([x.mean((0, 1)) @ see, h]) @ gate["weight"] + gate["bias"]).chunk(4)
            c = f.sigmoid() * c + i.sigmoid() * u.tanh()
            h = o.sigmoid() * c.tanh()
            stride = 2 if number == 0 and depth > 0 else 1
            short = shrink(x, each[-1]["shift"].shape[0], stride)
            if float((h @ gate["head"] + gate["head_bias"]).detach()) > 0:
                x, ran = (short + added(each, x, stride)).relu(), ran + 1
            else:
                x = short
    return x.mean((0, 1)) @ w["head"] + w["head_bias"], ran
