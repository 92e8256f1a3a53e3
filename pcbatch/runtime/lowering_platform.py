"""The platform that a program is lowered for, which is not always that of the host's default device.

`jax.export`, `lowering_platforms=` and `jax.default_device` lower for a device that need not be there. What is written
differently for a GPU than for a CPU therefore asks `lowering_platform()` while it is traced, and programs that are
traced for two platforms are two programs.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import cache
from typing import Any

import jax

from pcbatch.contexts import setting

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")  # as JAX names them where it lowers

_platform: ContextVar[str | None] = ContextVar("platform", default=None)


def lowering_platform() -> str:
    """Return the platform that what is traced now is lowered for: one of `PLATFORMS`, or that of a plug-in."""
    return _platform.get() or default_platform()


def lowered_for(platform: str) -> AbstractContextManager[None]:
    """Let `lowering_platform()` return a platform within the context."""
    return setting(_platform, platform)


def default_platform() -> str:
    """Return the platform of the device that JAX takes by itself."""
    config: Any = jax.config  # untyped in JAX
    chosen = config.jax_default_device
    if chosen is None or isinstance(chosen, str):
        return _of_backend(chosen)
    return platform_of(chosen)


def platform_of(device: Any) -> str:
    """Return the platform of a `jax.Device`."""
    platform: str = device.platform
    return _kind_of_gpu(device.client) if platform == "gpu" else platform


@cache
def _of_backend(name: str | None) -> str:
    return platform_of(jax.devices(name)[0])


def _kind_of_gpu(client: Any) -> str:
    """Return which of JAX's GPU platforms a client is: both call their devices "gpu"."""
    return "rocm" if "rocm" in client.platform_version.lower() else "cuda"
