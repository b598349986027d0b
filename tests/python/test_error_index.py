# SPDX-License-Identifier: Apache-2.0
"""The index of errors has every public exception, every status code, and messages that exist."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import pccl
from pccl import errors

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs/reference/errors.md").read_text()
STATUS = (REPOSITORY / "include/pccl/status.h").read_text()
CODES = re.findall(r"^    (k\w+),", STATUS.split("enum class StatusCode")[1].split("};")[0], re.M)


def public_exceptions() -> list[type[BaseException]]:
    found: set[type[BaseException]] = set()
    for module in (errors, *(getattr(pccl, name) for name in pccl._MODULES)):
        for name in module.__all__:
            value = getattr(module, name) if name.endswith("Error") else None
            if inspect.isclass(value) and issubclass(value, BaseException):
                found.add(value)
    return sorted(found, key=lambda each: each.__name__)


def row_of(name: str) -> str:
    """Return the row of the table of classes that begins with a name."""
    (row,) = re.findall(rf"^\| `(?:pccl\.\w+\.)?{name}`.*$", PAGE.split("## Messages")[0], re.M)
    return str(row)


@pytest.mark.parametrize("error", public_exceptions(), ids=lambda error: error.__name__)
def test_each_public_exception_has_a_row(error: type[BaseException]) -> None:
    cells = [cell.strip() for cell in row_of(error.__name__).strip("|").split("|")]
    assert len(cells) == 7
    assert cells[3]  # its meaning
    base = error.__bases__[-1].__name__
    assert error.__bases__ == (errors.Error,) or base in cells[0]
    if issubclass(error, errors.Error) and error not in (errors.Error, pccl.phases.SwitchError):
        assert cells[1] == f"`{error.code}`"


def test_each_status_code_has_a_row() -> None:
    assert len(CODES) == 10
    listed = re.findall(r"^\|[^|]*\|[^|]*\| `(k\w+)` \|", PAGE, re.M)
    assert sorted(listed) == sorted(CODES)


def test_codes_of_rows_belong_together() -> None:
    for cls in {errors.class_of(code) for code in re.findall(r"\| `([a-z_]+)` \|", PAGE)}:
        name = "k" + cls.code.title().replace("_", "")
        assert f"| `{cls.code}` | `{name}` |" in row_of(cls.__name__)


def test_messages_are_those_of_the_library() -> None:
    """What a row quotes between its dots is in the sources, where a literal may go over lines."""
    sources = [
        path.read_text()
        for folder, pattern in (("csrc", "**/*.cc"), ("csrc", "**/*.h"), ("python/pccl", "**/*.py"))
        for path in sorted((REPOSITORY / folder).glob(pattern))
    ]
    text = re.sub(r'"\s*\n\s*[fr]?"', "", "\n".join(sources)).replace('\\"', '"')
    quoted = re.findall(r"^\| `([^`]+)` \| ", PAGE.split("## Messages")[1], re.M)
    assert len(quoted) >= 40
    parts = {part.strip() for message in quoted for part in message.split("...")}
    assert [part for part in sorted(parts) if len(part) > 3 and part not in text] == []
