# SPDX-License-Identifier: Apache-2.0
"""Former names are found in code, and as names of files; English words are free."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_vocabulary  # noqa: E402


def found(name: str, text: str) -> list[str]:
    return list(check_vocabulary.former_names(Path(name), text))


def test_a_former_identifier_is_found_with_its_line() -> None:
    text = "// a ring\nclass " + "Far" + "ewell;\n"
    assert found("csrc/a.h", text) == [
        "csrc/a.h:2: " + "Far" + "ewell is called CloseReason",
    ]


def test_a_former_name_of_a_file_is_found() -> None:
    former = "in" + "quest"
    for name in (f"csrc/{former}.cc", f"tests/cpp/comm/{former}_test.cc", f"test_{former}.py"):
        assert found(name, "") == [f"{name}: {former} is called graph_walk, wait_for_graph"]


def test_words_and_longer_identifiers_are_free() -> None:
    assert found("csrc/a.h", "int keyboard; // the way boards greeted late words") == []


def test_no_former_name_is_in_use() -> None:
    assert check_vocabulary.main() == 0
