"""The types of IR variables: one array per lane, or nothing known yet (`None`, printed `?`)."""

from __future__ import annotations

import math
from dataclasses import dataclass

# The names that jaxprs use, both ways.
SHORT = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex64": "c64", "complex128": "c128",
    "int2": "i2", "int4": "i4", "uint2": "u2", "uint4": "u4",
    "float4_e2m1fn": "f4_e2m1fn", "float8_e3m4": "f8_e3m4", "float8_e4m3": "f8_e4m3", "float8_e4m3fn": "f8_e4m3fn",
    "float8_e4m3fnuz": "f8_e4m3fnuz", "float8_e4m3b11fnuz": "f8_e4m3b11fnuz", "float8_e5m2": "f8_e5m2",
    "float8_e5m2fnuz": "f8_e5m2fnuz", "float8_e8m0fnu": "f8_e8m0fnu",
}  # fmt: skip
LONG = {short: long for long, short in SHORT.items()}


@dataclass(frozen=True, slots=True)
class ArrayType:
    """The type of one lane's value: dtype and shape without the lane axis.

    `weak` is JAX's weak type (a Python scalar whose dtype yields to that of others); printed `~f32[]`.
    `dtype` is a NumPy dtype name or that of a typed PRNG key ("key<fry>").
    """

    dtype: str
    shape: tuple[int, ...] = ()
    weak: bool = False

    def __str__(self) -> str:
        name = SHORT.get(self.dtype, self.dtype)
        return f"{'~' if self.weak else ''}{name}[{','.join(map(str, self.shape))}]"

    @property
    def size(self) -> int:
        """The number of elements per lane."""
        return math.prod(self.shape)


BOOL = ArrayType("bool")


def parse_type(text: str) -> ArrayType | None:
    """Read a type such as `i32[3]`, `~f32[]` or `key<fry>[]`, None for `?`; raises ValueError for other texts."""
    text = text.strip()
    if text == "?":
        return None
    weak = text.startswith("~")
    name, bracket, dims = text.removeprefix("~").partition("[")
    if not bracket or not dims.endswith("]") or not name:
        raise ValueError(f"not a type: {text!r} (write i32[], f32[3,4], bool[])")
    if name not in LONG and name not in SHORT and not name.startswith("key<"):
        raise ValueError(f"unknown dtype {name!r} in {text!r} (known: {', '.join(LONG)})")
    try:
        shape = tuple(int(d) for d in dims[:-1].split(",") if d.strip())
    except ValueError:
        raise ValueError(f"not a shape: [{dims} in {text!r}") from None
    if any(d < 0 for d in shape):
        raise ValueError(f"negative size in {text!r}")
    return ArrayType(LONG.get(name, name), shape, weak)
