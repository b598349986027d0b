# SPDX-License-Identifier: Apache-2.0
"""The directive ``public-headers``: what the headers it names declare, and their comments.

It knows the style of this repository's headers, not C++: see .clang-format and CONTRIBUTING.md.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
# The comment about a header, without the line that names its licence.
LEADING_COMMENT = re.compile(r"(?:// SPDX-.*\n\n?)?((?://.*\n)*)")
FORWARD = re.compile(r"^namespace \S+ \{\n(?:(?:class|struct) \w+;\n)+\}\n", re.MULTILINE)
NAMESPACE = re.compile(r"^namespace (\S+) \{\n(.*?)^\}  // namespace", re.MULTILINE | re.DOTALL)
MACRO = re.compile(r"^((?:///.*\n)+#define \w+\([^)]*\))", re.MULTILINE)
CLASS = re.compile(r"^(?:template <.*>\n)?class .*\{$", re.MULTILINE)
PUBLIC = re.compile(r"^ +public:\n(.*?)(?=^ +(?:protected|private):|\Z)", re.MULTILINE | re.DOTALL)
# Where the body of a function, or what its constructor initialises, begins.
BODY = re.compile(r"(?<=\))((?: const| noexcept| &&?)*)\s+(?::\s|\{).*", re.DOTALL)


def statements(text: str) -> Iterator[str]:
    """Split at blank lines, comments, and where all that was opened is closed."""
    taken = ""
    for line in text.splitlines():
        taken += f"\n{line}"
        code = re.sub(r"//.*|\"[^\"]*\"", "", taken).strip()
        is_open = any(code.count(a) != code.count(b) for a, b in ("()", "{}"))
        if not code or code.startswith("#") or (not is_open and code[-1] in ";}"):
            yield taken.removeprefix("\n")
            taken = ""


def shortened(statement: str) -> list[str]:
    """Give the lines of a declaration without the body of its function and notes to linters."""
    code = re.sub(r"\s*// NOLINT.*", "", statement)
    if not re.match(r"\s*(struct|enum|inline constexpr|using)\b", code):
        code = BODY.sub(r"\1;", code)
    return code.splitlines()


def code_block(lines: list[str]) -> nodes.Node:
    code = textwrap.dedent("\n".join(lines))
    return nodes.literal_block(code, code, language="cpp")


def prose(lines: list[str]) -> Iterator[nodes.Node]:
    """Give paragraphs, and as code what is indented."""
    for part in re.split(r"\n\n+", "\n".join(lines)):
        if part.startswith("    "):
            yield code_block([part])
        elif part:
            words = enumerate(" ".join(part.split()).split("`"))
            yield nodes.paragraph(
                "", "", *[nodes.literal(w, w) if i % 2 else nodes.Text(w) for i, w in words]
            )


def described(text: str) -> Iterator[nodes.Node]:
    """Give the declarations, each under its comment as in the header; of a class what is public."""
    comment: list[str] = []
    code: list[str] = []
    for statement in [*statements(text), ""]:
        line = statement.strip()
        is_class = CLASS.search(statement)
        if code and (not line or line.startswith("///") or is_class):
            yield from (*prose(comment), code_block(code))
            comment, code = [], []
        if is_class:
            head, _, body = statement.partition(" {\n")
            yield code_block([head])
            inside = described("".join(PUBLIC.findall(body)))
            yield nodes.block_quote("", *prose(comment), *inside)
            comment = []
        elif line.startswith("///"):
            comment.append(line[4:])
        elif not re.fullmatch(r"|(class|struct) \w+;|// .*", line):
            code += shortened(statement)


class PublicHeaders(SphinxDirective):
    """Makes a section of each header."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        return [self.section(name) for name in self.content if name]

    def section(self, name: str) -> nodes.section:
        self.env.note_dependency(str(ROOT / name))
        text = FORWARD.sub("", (ROOT / name).read_text())
        comment = LEADING_COMMENT.match(text)
        assert comment is not None
        section = nodes.section("", nodes.title("", "", nodes.literal(name, name)), names=[name])
        section += prose([line[3:] for line in comment[1].splitlines()])
        for namespace, body in NAMESPACE.findall(text):
            section += [*prose([f"In `{namespace}`:"]), *described(body)]
        for macro in MACRO.findall(text):
            section += described(macro)
        self.state.document.note_implicit_target(section)
        return section


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("public-headers", PublicHeaders)
    return {"parallel_read_safe": True}
