# SPDX-License-Identifier: Apache-2.0
"""tools/build_docs.py: what makes it build, and what a link that leads nowhere does to it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PARTS = ["docs", "python/pccl", "cmake", "tools", "csrc", "include", "examples", "benchmarks"]
IS_PART = """
import sys
import build_docs
print([name for name in sys.argv[1:] if build_docs.is_part(build_docs.ROOT / name)])
"""


def parts(*names: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", IS_PART, *names],
        cwd=REPOSITORY / "tools",
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_pages_sources_of_python_public_headers_and_what_is_gone_are_parts() -> None:
    names = ["README.md", "docs/images/cpu_torch.svg", "python/pccl/_core/device.pyi"]
    names += ["include/pccl/communicator.h", "csrc/gone.cc"]
    assert parts(*names) == str(names)


def test_other_sources_are_none() -> None:
    assert parts("csrc/comm/communicator.cc", "csrc/runtime/runtime.h", "tools/lint.sh") == "[]"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Give a copy of the tree without what is built."""
    for name in PARTS:
        ignored = shutil.ignore_patterns("__pycache__", "build")
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=ignored)
    for file in REPOSITORY.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    return tmp_path


def test_links_that_lead_nowhere_are_reported_and_fail(copy: Path) -> None:
    pytest.importorskip("sphinx")
    links = ["docs/nowhere.md", "docs/reference/gpus.md#nowhere", "tools/nowhere.sh"]
    page = copy / "CONTRIBUTING.md"
    page.write_text("".join([page.read_text(), *(f"\n[link]({link})\n" for link in links)]))
    done = subprocess.run(
        [sys.executable, copy / "tools" / "build_docs.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    reported = [line for line in done.stderr.splitlines() if "WARNING" in line]
    assert done.returncode != 0
    assert len(reported) == len(links), done.stderr
    assert all("CONTRIBUTING.md" in line and "nowhere" in line for line in reported)
