# SPDX-License-Identifier: Apache-2.0
"""PCCL's YANG modules, by the rules for those that are published (RFC 8407)."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

MODULES = sorted((Path(__file__).parents[2] / "csrc/cluster/yang").glob("*.yang"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_pyang_finds_nothing(module: Path) -> None:
    if importlib.util.find_spec("pyang") is None:
        pytest.skip("pyang is not installed (tools/setup_netconf_servers.sh)")
    for rules in ("--lint", "--strict"):
        done = subprocess.run(
            [sys.executable, "-m", "pyang", rules, module],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_each_revision_has_a_description_and_a_reference(module: Path) -> None:
    revisions = re.findall(r"\n  revision [0-9-]+ \{(.*?)\n  \}", module.read_text(), re.DOTALL)
    assert revisions
    for each in revisions:
        assert "\n    description\n" in each
        assert "\n    reference\n" in each
