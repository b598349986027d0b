# SPDX-License-Identifier: Apache-2.0
"""The reader of stubs that the build uses, cmake/read_stub.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast

REPOSITORY = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("read_stub", REPOSITORY / "cmake/read_stub.py")
assert _spec is not None
assert _spec.loader is not None
_tool = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_tool)


def read_stub(stub: Path) -> ast.Module:
    """Return a stub, a file or a folder of files by subject, as one module."""
    tree: ast.Module = _tool.read_stub(stub)
    return tree
