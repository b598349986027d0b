# SPDX-License-Identifier: Apache-2.0
"""The programs that C++ tests read are those that are made today."""

from __future__ import annotations

from support import kept_capsules


def test_kept_programs_are_what_is_made_today() -> None:
    kept = {file.name: file.read_bytes() for file in kept_capsules.FOLDER.iterdir()}
    assert kept == kept_capsules.files()
