"""`python -m examples.gallery`: every program of the gallery, one line each."""

from __future__ import annotations

import importlib

from examples.gallery import NAMES

for name in NAMES:
    try:
        importlib.import_module(f"examples.gallery.{name}").main()
    except ModuleNotFoundError as missing:
        print(f"{name}: skipped, it needs {missing.name}")
