"""The examples in the docstrings of the public face do what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

pytestmark = pytest.mark.promotion("standard")


@pytest.mark.parametrize("module", ["api.batch", "api.batched", "call.results"])
def test_examples(module: str) -> None:
    failures, tried = doctest.testmod(importlib.import_module(f"pcbatch.{module}"))
    assert failures == 0
    assert tried > 0
