# SPDX-License-Identifier: Apache-2.0
"""Each rule of tools/check_prose.py finds its bad sentence, with its line, and no good one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_prose  # noqa: E402

GOOD = "The error names the rank. You may ask for a report, which contains the operation.\n"
LONG = "The group waits " + "for one more rank " * 10 + "and ends.\n"


def found(name: str, text: str) -> list[str]:
    return list(check_prose.check([(Path(name), text)]))


@pytest.mark.parametrize(
    ("name", "text", "start"),
    [
        ("docs/a.md", f"{GOOD}\nThe error says\nit.\n", '3: speech: "says": objects return'),
        ("docs/a.md", f"{GOOD}The ranks are told.\n", '2: speech: "told": objects return'),
        ("docs/a.md", "It ends. Of these,\none is left.\n", '1: start: "Of": begin with the'),
        ("docs/a.md", "- Else it ends.\n", '1: start: "Else": begin with the subject'),
        ("docs/a.md", f"{GOOD}\n{LONG}", '3: length: "The group waits for ... (45 words)'),
        ("docs/a.md", "It shows what it has.\n", '1: what: documents have "what" 200.00 times'),
        ("csrc/a.h", "int a;\n// It asks rank 0.\n", '2: speech: "asks"'),
        ("csrc/a.h", "int a;  /* One.\n * The same is here. */\n", '2: start: "The same"'),
        ("python/a.py", 'def f():\n    """Tell it."""\n', '2: speech: "Tell"'),
        ("python/a.py", "x = 1  # nobody; it knows\n", '1: speech: "knows"'),
    ],
)
def test_a_bad_sentence_is_found_with_its_line(name: str, text: str, start: str) -> None:
    (line,) = found(name, text)
    assert line.startswith(f"{name}:{start}"), line


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docs/a.md", GOOD),
        (
            "docs/a.md",
            "The field is `what it says`.\n\n```\nit says what\n```\n\n| it says | what |\n",
        ),
        ("docs/a.md", "- Run it:\n\n      it says what\n"),
        ("csrc/a.h", 'log("it says");  // as in "it says"\n//  | -- it asks -->  |\n'),
        ("python/a.py", 'say = "it says what"\n'),
        ("tests/python/a.py", "# it says what\n"),
        ("CHANGELOG.md", "It says what.\n"),
    ],
)
def test_good_sentences_code_and_quotations_are_free(name: str, text: str) -> None:
    assert found(name, text) == []


def test_no_bad_sentence_is_in_the_tree() -> None:
    assert check_prose.main() == 0
