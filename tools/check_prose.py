# SPDX-License-Identifier: Apache-2.0
"""Check the sentences of documents, docstrings and comments.

Each finding is one line: the place, the words, and the right form. The rules:

- ``speech``: no object says, tells, hears, speaks, asks, knows or thinks; people may.
- ``start``: no sentence begins with *Of*, *Else* or *The same*.
- ``length``: a sentence of a document has at most 40 words.
- ``what``: of 1,000 words, at most ``MOST_WHAT`` are *what*, in each kind of text.

Code, tables, links and quoted words are left out, and so are tests, whose names are sentences.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent
MOST_WORDS = 40
MOST_WHAT = {"documents": 2.0, "docstrings and comments of Python": 2.5, "comments of C++": 0.5}
DOCUMENTS, PYTHON, CPP = MOST_WHAT

_PEOPLE = r"(?:you|we|I|they|people|users?|authors?|somebody|nobody|anybody|operators?)"
_HELPERS = r"(?:(?:can|may|must|should|will|do|does|to|also|only|not|never|has|have|had) )*"
_SPEECH = re.compile(
    rf"(?P<people>\b{_PEOPLE} {_HELPERS})?"
    r"\b(?P<verb>says?|said|tells?|told|hears?|heard|speaks?|spoken?|asks?|asked|knows|knew"
    r"|thinks?|thought)\b",
    re.IGNORECASE,
)
_START = re.compile(r"(?:^|(?<=[.:;?!]\s))(?:Of|Else|The same)\b")
_WHAT = re.compile(r"\bwhat\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_][\w'-]*")
_SENTENCE = re.compile(r"(?<=[.:;?!])[)*_]*\s+(?=\S)")
_QUOTED = re.compile(r"``.*?``|`[^`]*`|\"[^\"\n]*\"|\]\([^)]*\)|https?://\S+", re.DOTALL)
_CPP_COMMENT = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'|//+[!<]*(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/',
    re.DOTALL,
)

RIGHT = {
    "speech": "objects return, report, contain, show, require, request or have",
    "start": "begin with the subject of the sentence",
    "length": f"at most {MOST_WORDS} words: make it two sentences",
}


class Block(NamedTuple):
    """Text of one paragraph, and the line at which it begins."""

    line: int
    text: str


class Finding(NamedTuple):
    """Violation of a rule."""

    line: int
    rule: str
    words: str


def without_quotes(text: str) -> str:
    """Replace code, quoted words and targets of links, but no line ends."""
    return _QUOTED.sub(lambda m: "X" + "\n" * m.group().count("\n"), text)


def paragraphs(lines: Iterable[tuple[int, str]]) -> Iterator[Block]:
    """Join lines up to an empty one, a drawing, an item of a list, or a gap between numbers."""
    begin, last, held = 0, 0, list[str]()
    for number, line in lines:
        text = "" if line.lstrip().startswith("|") else line.strip()
        if held and (not text or number != last + 1 or re.match(r"([-*+]|\d+\.) ", text)):
            yield Block(begin, "\n".join(held))
            held = []
        if text:
            begin = begin if held else number
            held.append(re.sub(r"^([-*+>]|\d+\.) ", "", text))
        last = number
    if held:
        yield Block(begin, "\n".join(held))


def document_blocks(text: str) -> Iterator[Block]:
    """Give the paragraphs of Markdown, without code, tables and headings."""
    fence = ""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (not fence or line.strip() == fence):
            fence = "" if fence else mark.group(1)
            lines.append((number, ""))
        else:
            is_left_out = fence or re.match(r" {6}|\s*(\||#|<|:::|\[\^?\w+\]:)", line)
            lines.append((number, "" if is_left_out else line))
    yield from paragraphs(lines)


def python_blocks(text: str) -> Iterator[Block]:
    """Give the paragraphs of docstrings, without doctests, and of comments."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            doc = ast.get_docstring(node, clean=False)
            first = node.body[0].lineno if doc else 0
            lines = enumerate((doc or "").splitlines(), first)
            yield from paragraphs((n, "" if ">>>" in line else line) for n, line in lines)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [t for t in tokens if t.type == tokenize.COMMENT]
    yield from paragraphs((t.start[0], t.string.lstrip("#: ")) for t in comments)


def cpp_blocks(text: str) -> Iterator[Block]:
    """Give the paragraphs of comments."""
    lines = list[tuple[int, str]]()
    for each in _CPP_COMMENT.finditer(text):
        comment = each.group("block") if each.group("line") is None else each.group("line")
        if comment is not None:
            first = text.count("\n", 0, each.start()) + 1
            lines += [(first + i, line.strip(" *")) for i, line in enumerate(comment.split("\n"))]
    yield from paragraphs(lines)


def findings(block: Block, kind: str) -> Iterator[Finding]:
    """Give the violations in a paragraph."""
    text = without_quotes(block.text)

    def at(offset: int) -> int:
        return block.line + text.count("\n", 0, offset)

    for each in _SPEECH.finditer(text.replace("\n", " ")):
        if not each.group("people"):
            yield Finding(at(each.start("verb")), "speech", each.group("verb"))
    for each in _START.finditer(text):
        yield Finding(at(each.start()), "start", each.group())
    if kind == DOCUMENTS:
        begin = 0
        for end in [*(m.end() for m in _SENTENCE.finditer(text)), len(text)]:
            words = _WORD.findall(text[begin:end])
            if len(words) > MOST_WORDS:
                beginning = " ".join(words[:4])
                yield Finding(at(begin), "length", f"{beginning} ... ({len(words)} words)")
            begin = end


def blocks_of(path: Path, text: str) -> tuple[str, Iterator[Block]]:
    """Return the kind of a file, and its paragraphs; an empty kind where it is not checked."""
    top = path.parts[0]
    is_document = top in {"docs", "examples", "plugins", "benchmarks"} or len(path.parts) == 1
    if path.suffix == ".md" and is_document and path.name != "CHANGELOG.md":
        return DOCUMENTS, document_blocks(text)
    if path.suffix in {".py", ".pyi"} and top in {"python", "tools"}:
        return PYTHON, python_blocks(text)
    if path.suffix in {".h", ".cc", ".cu", ".cuh"} and top in {"csrc", "include", "plugins"}:
        return CPP, cpp_blocks(text)
    return "", iter(())


def check(files: Iterable[tuple[Path, str]]) -> Iterator[str]:
    """Give one line for each violation in files, which are pairs of path and text."""
    words, whats = Counter[str](), defaultdict[str, list[str]](list)
    for path, text in files:
        kind, blocks = blocks_of(path, text)
        for block in blocks:
            for found in findings(block, kind):
                right = RIGHT[found.rule]
                yield f'{path}:{found.line}: {found.rule}: "{found.words}": {right}'
            plain = without_quotes(block.text)
            words[kind] += len(_WORD.findall(plain))
            places = [block.line + plain.count("\n", 0, m.start()) for m in _WHAT.finditer(plain)]
            whats[kind] += [f"{path}:{line}" for line in places]
    for kind, places in whats.items():
        per_thousand = 1000 * len(places) / max(1, words[kind])
        if per_thousand > MOST_WHAT[kind]:
            file, times = Counter(each.split(":")[0] for each in places).most_common(1)[0]
            line = next(each for each in places if each.startswith(f"{file}:"))
            yield (
                f'{line}: what: {kind} have "what" {per_thousand:.2f} times in 1,000 words, {times}'
                f" in this file; at most {MOST_WHAT[kind]:g}: name the thing"
            )


def tracked(root: Path) -> Iterator[tuple[Path, str]]:
    """Give the texts of the files that git tracks, by their paths below the root."""
    command = ["git", "-C", str(root), "ls-files", "-z"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in listed.split("\0"):
        path = Path(name)
        suffixes = {".md", ".py", ".pyi", ".h", ".cc", ".cu", ".cuh"}
        if path.suffix in suffixes and path.name != Path(__file__).name and (root / path).is_file():
            yield path, (root / path).read_text(encoding="utf-8")


def main() -> int:
    """Print all findings."""
    found = list(check(tracked(ROOT)))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
