# SPDX-License-Identifier: Apache-2.0
"""How a folder of stubs is read as the stub of one extension module (cmake/read_stub.py)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from support.stubs import REPOSITORY, read_stub

if TYPE_CHECKING:
    from pathlib import Path

LONGEST = 900
MOST_FLAT = 12


def test_files_by_subject_are_read_as_one_module(tmp_path: Path) -> None:
    files = {
        "__init__": '"""All."""\nfrom pccl._m.b import B as B\nfrom pccl._m.z import A as A\n',
        "b": '"""B."""\nimport os\nfrom pccl._m.z import A, _Part\n'
        'class B(_Part):\n    """Text."""\n    def g(self) -> A: ...\n',
        "z": '"""Z."""\nclass A: ...\n'
        'class _Part:\n    """Part."""\n    def f(self) -> None: ...\n',
    }
    (tmp_path / "_m").mkdir()
    for name, text in files.items():
        (tmp_path / "_m" / f"{name}.pyi").write_text(text)
    assert ast.unparse(read_stub(tmp_path / "_m")) == ast.unparse(
        ast.parse(
            '"""All."""\nimport os\nclass A: ...\n'
            'class B:\n    """Text."""\n    def g(self) -> A: ...\n    def f(self) -> None: ...\n'
        )
    )


def test_a_file_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "_m.pyi").write_text('"""All."""\nx: int\n')
    assert ast.unparse(read_stub(tmp_path / "_m")) == '"""All."""\nx: int'


def test_the_stub_exports_all_that_its_files_define() -> None:
    stub = REPOSITORY / "python/pccl/_core"
    exported = {
        each.name
        for part in ast.parse((stub / "__init__.pyi").read_text()).body
        if isinstance(part, ast.ImportFrom)
        for each in part.names
    }
    defined = {
        part.name
        for part in read_stub(stub).body
        if isinstance(part, ast.ClassDef | ast.FunctionDef) and not part.name.startswith("_")
    }
    assert {name for name in exported if not name.startswith("_")} == defined


def test_stubs_and_the_package_stay_readable() -> None:
    package = REPOSITORY / "python/pccl"
    lengths = {path: len(path.read_text().splitlines()) for path in package.rglob("*.pyi")}
    assert {path: length for path, length in lengths.items() if length > LONGEST} == {}
    flat = [path for path in package.glob("*.py") if not path.name.startswith("__")]
    assert len(flat) <= MOST_FLAT
