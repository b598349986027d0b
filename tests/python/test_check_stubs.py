# SPDX-License-Identifier: Apache-2.0
"""When tools/check_stubs.py runs stubtest: again after any change, and until it has passed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_stubs.py"
FILES = [
    "build/python/pccl/_core.so",
    "pyproject.toml",
    "python/pccl/_core/device.pyi",
    "python/pccl/topology/plan.py",
    "tools/stubtest_allowlist.txt",
]
CHECK = """
import sys
import check_stubs as tool
tool.stubtest = lambda build: print("checked") or int(sys.argv[2])
sys.exit(tool.main())
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one\n")
    shutil.copy(TOOL, tmp_path / "tools")
    return tmp_path


def check(clone: Path, outcome: int = 0) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", CHECK, "build", str(outcome)],
        env=os.environ | {"PYTHONPATH": str(clone / "tools"), "XDG_CACHE_HOME": str(clone)},
        capture_output=True,
        text=True,
        check=False,
        cwd=clone,
    )
    return done.returncode, done.stdout


def test_what_passed_is_not_checked_again(clone: Path) -> None:
    assert check(clone) == (0, "checked\n")
    assert check(clone) == (0, "stubtest: passed before\n")


def test_what_failed_is_checked_until_it_passes(clone: Path) -> None:
    assert check(clone, outcome=1) == (1, "checked\n")
    assert check(clone, outcome=1) == (1, "checked\n")
    assert check(clone) == (0, "checked\n")


@pytest.mark.parametrize("name", FILES)
def test_any_change_is_checked(name: str, clone: Path) -> None:
    check(clone)
    (clone / name).write_text("two\n")
    assert check(clone) == (0, "checked\n")
