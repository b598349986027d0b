# SPDX-License-Identifier: Apache-2.0
"""Write the C++ table (csrc/extension/docstrings.h) of the docstrings and signatures in a stub.

make_docstrings.py <stub> <table.cc>

The stub is named without .pyi, as the module: python/pccl/_core.
"""

from __future__ import annotations

import ast
import copy
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from read_stub import read_stub

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE = """// Of {stub}, by cmake/make_docstrings.py.
#include <array>

#include "csrc/extension/docstrings.h"

namespace pccl::extension {{

std::span<const Docstring> table() {{
    static constexpr auto kTable = std::to_array<Docstring>({{
{rows}
    }});
    return kTable;
}}

}}  // namespace pccl::extension
"""


def docstrings(
    node: ast.Module | ast.ClassDef | ast.FunctionDef, name: str = ""
) -> Iterator[tuple[str, str]]:
    """Give the names and texts of ``node`` and of what it holds."""
    text = ast.get_docstring(node) or ""
    if isinstance(node, ast.FunctionDef) and not is_property(node):
        yield name, f"{signature(node)}\n--\n\n{text}"
    elif text:
        yield name, text
    known: set[str] = set()
    for part in node.body:
        # Of overloads the first counts: it has the defaults, and the text.
        if isinstance(part, ast.ClassDef | ast.FunctionDef) and part.name not in known:
            known.add(part.name)
            yield from docstrings(part, f"{name}.{part.name}".removeprefix("."))


def is_property(node: ast.FunctionDef) -> bool:
    names = [each.id for each in node.decorator_list if isinstance(each, ast.Name)]
    return "property" in names


def signature(node: ast.FunctionDef) -> str:
    """Give it as CPython reads it off a docstring, for ``inspect.signature``: without types."""
    arguments = copy.deepcopy(node.args)
    for each in ast.walk(arguments):
        if isinstance(each, ast.arg):
            each.annotation = None
    return f"{node.name}({ast.unparse(arguments)})"


def literal(text: str) -> str:
    """Give a C++ string literal for each line."""
    lines = text.splitlines(keepends=True)
    return "\n         ".join(json.dumps(line, ensure_ascii=False) for line in lines)


def table(stub: Path) -> str:
    """Give the source."""
    texts = dict(docstrings(read_stub(stub)))
    rows = [
        f'        {{"{name}",\n         {literal(text)}}},' for name, text in sorted(texts.items())
    ]
    return TABLE.format(stub=stub.name, rows="\n".join(rows))


def main() -> None:
    stub, written = map(Path, sys.argv[1:])
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text(table(stub), encoding="utf-8")


if __name__ == "__main__":
    main()
