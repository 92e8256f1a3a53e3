"""The arguments of a call on their way to devices: mapped and common ones apart, keys as what they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.typing.jax_types import from_storage, is_key
from pcbatch.runtime.sharding.lane_sharding import LaneSharding, ShardedArguments


@dataclass(frozen=True, slots=True)
class ArgumentSharding:
    """Splits the arguments of a program's calls and shards them.

    Attributes:
        program: its variables have the types of arguments for one lane.
        prints: whether lanes print, and so need to know the numbers of their inputs.
    """

    program: StackProgram
    prints: bool

    def split(self, args: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arguments with a value per input, and those that all inputs share."""
        mapped = {v for v, value in args.items() if self.is_mapped(v, value)}
        return {v: args[v] for v in args if v in mapped}, {v: args[v] for v in args if v not in mapped}

    def is_mapped(self, name: str, value: Any) -> bool:
        """Whether the value of a parameter has an axis of lanes."""
        return jnp.ndim(value) > len(self._type(name).shape)

    def sharded(self, args: Mapping[str, Any], sharding: LaneSharding) -> ShardedArguments:
        """Shard the arguments of a call, in a trace or out of one."""
        return sharding.dealt(*self.split(args), self.prints)

    def natural(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments with typed keys, of which some may come as their raw words."""
        return {v: self.as_leaf(v, x) for v, x in args.items()}

    def as_leaf(self, name: str, value: Any) -> Any:
        """Return the value of a variable; a key that comes as its raw words becomes a typed key."""
        type_ = self._type(name)
        raw = is_key(type_) and not jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
        return from_storage(value, type_) if raw else value

    def _type(self, name: str) -> Any:
        return self.program.vars[name].type
