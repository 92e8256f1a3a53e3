"""The refusal of an equation that the kernel cannot hold."""

from __future__ import annotations

from typing import Any

from jax.extend import source_info_util


class Unsupported(Exception):
    """An equation has no form that the kernel can hold: the program needs another emitter.

    Args:
        reason: why, as a clause: "complex numbers", "a one-hot selection of 65536 x 32 elements".
        primitive: the name of the primitive; empty until `of` fills it in.
        source: where the user's code made the equation, "file:line:column (function)"; empty where JAX does not say.

    Example:
        >>> str(Unsupported("it factorises a matrix", "cholesky"))
        '`cholesky` has no form in a kernel: it factorises a matrix'
    """

    def __init__(self, reason: str, primitive: str = "", source: str = "") -> None:
        super().__init__(reason, primitive, source)
        self.reason, self.primitive, self.source = reason, primitive, source

    def __str__(self) -> str:
        place = f" ({self.source})" if self.source else ""
        return f"`{self.primitive}` has no form in a kernel: {self.reason}{place}"

    def of(self, eqn: Any) -> Unsupported:
        """Name the equation where none inside of it is named, and the line of the innermost that has one."""
        return Unsupported(self.reason, self.primitive or eqn.primitive.name, self.source or where(eqn))


def where(eqn: Any) -> str:
    """Return where the user's code made an equation, empty if JAX does not say."""
    try:
        return str(source_info_util.summarize(eqn.source_info))
    except Exception:  # an aid to messages alone: no change of JAX there may turn a refusal into a failure
        return ""
