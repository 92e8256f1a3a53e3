"""Tests of what `tools.llvm_passes` reads in XLA's dumps. LLVM's seconds need llvmlite, which tests do without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import llvm_passes

TEXT = """
  %1 = icmp uge i64 %dynamic_update_slice.23.indvar.dim.0, 1
  %2 = icmp uge i64 %dynamic_update_slice.4.indvar.dim.0, 1
  %3 = icmp uge i64 %"wrapped_dynamic-slice.7.kLoop_fusion.indvar.dim.1", 8
  %4 = icmp uge i64 %total, 3
"""


def test_loops_are_counted_by_operation_and_rounds() -> None:
    found = {("dynamic_update_slice", 1): 2, ("wrapped_dynamic-slice kLoop_fusion", 8): 1}
    assert llvm_passes.loops(TEXT) == found


def test_a_folder_without_dumps_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        llvm_passes.main([str(tmp_path)])
    assert "set XLA_FLAGS as above" in capsys.readouterr().err
