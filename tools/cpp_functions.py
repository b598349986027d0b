# SPDX-License-Identifier: Apache-2.0
"""The functions of C++ files, found by their text: no build is needed, so any revision can be read.

A function is a body in braces at the scope of a namespace or class, whose head ends with its
parameters and what may follow them. Bodies are not looked into: a lambda belongs to its function.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NOISE = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"\((?:.*?)\)\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'"
    r"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
    re.DOTALL | re.MULTILINE,
)
_SCOPE = re.compile(r"\b(?:namespace|class|struct|union|extern)\b(?![^()]*\()[^()]*$")
_CLASS = re.compile(r"\b(?:class|struct|union)\b[^:{]*?\b(\w+)(?:\s+final)?\s*(?::(?!:)[^{]*)?$")
_TAIL = r"(?:\s*(?:const|noexcept|override|final|&&?|->\s*[\w:<>,&*\s]+|requires[^{]*))*\s*$"
_FUNCTION = re.compile(
    r"([~\w]+(?:::[~\w]+)*|operator\s*[^\s\w(]+|operator\(\))\s*\(.*\)" + _TAIL, re.DOTALL
)
_MEMBERS = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:)(?=[^:].*[\w>]$)", re.DOTALL)
_NO_NAMES = {"if", "for", "while", "switch", "catch", "decltype", "static_assert", "alignas"}


@dataclass(frozen=True)
class Function:
    """A definition: its name with its class, its text without comments, its lines."""

    name: str
    text: str
    lines: int


def without_noise(text: str) -> str:
    """Blank comments, strings and preprocessor lines; keep line breaks."""
    return _NOISE.sub(lambda match: "\n" * match[0].count("\n") or " ", text)


def functions(path: Path) -> Iterator[Function]:
    """Give every function that a file defines."""
    text = without_noise(path.read_text())
    begin = at = 0
    scopes: list[str] = []  # classes with "::" behind them, and "" for namespaces
    while at < len(text):
        character = text[at]
        at += 1
        if character in ";}":
            begin = at
            if character == "}" and scopes:
                scopes.pop()
        elif character == "{":
            head = text[begin : at - 1]
            if _SCOPE.search(head):
                found = _CLASS.search(head)
                scopes.append(f"{found[1]}::" if found else "")
                begin = at
                continue
            end = _closing(text, at)
            name = _name(head)
            if name is None:  # an initialiser in braces: its head goes on behind it
                at = end
                continue
            whole = text[begin:end].strip()
            yield Function("".join(scopes) + name, whole, whole.count("\n") + 1)
            begin = at = end


def _closing(text: str, at: int) -> int:
    depth = 1
    while depth and at < len(text):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return at


def _name(head: str) -> str | None:
    head = head.strip()
    if head.count("(") > head.count(")"):
        return None
    members = _MEMBERS.search(head)
    if members and not head.endswith((")", "}")):
        return None
    if members := re.search(r"\)\s*(?:noexcept\s*)?:(?!:)", head):
        head = head[: members.start() + 1]
    if not (match := _FUNCTION.search(head)):
        return None
    return None if match[1] in _NO_NAMES else match[1]
