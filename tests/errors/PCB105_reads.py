import jax.numpy as jnp

import pcbatch


class Node:
    def __init__(self, value, left=None):
        self.value = value
        self.left = left


def down(node):
    if node is not None:
        yield node.value
        yield from down(node.left)


@pcbatch.batch
def f(n):
    root = Node(n, Node(2 * n, Node(5)))
    total = 0
    for value in down(root):
        root.left.value += 1
        total += value
    return total


f(jnp.array([2, 4]))
