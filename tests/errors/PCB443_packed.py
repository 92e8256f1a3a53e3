import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pcbatch

folder = Path(tempfile.mkdtemp())


@dataclass
class Node:
    value: int
    next: Any = None


@pcbatch.batch
def total(node):
    out = 0
    while node is not None:
        out, node = out + node.value, node.next
    return out


nodes = pcbatch.pack([Node(1, Node(2)), Node(3)])
total.start(nodes).save(folder / "run.npz")
total.load(folder / "run.npz")
