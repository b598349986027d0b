# SPDX-License-Identifier: Apache-2.0
"""Cluster files: YAML or JSON, read into plain values. The C++ library checks their content."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pccl._internal import given_file
from pccl.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_cluster_file"]

_MOST_BYTES = 4 << 20
_MOST_DEPTH = 16
_ADVICE = "cluster files in YAML need PyYAML: pip install pyyaml; or write JSON to a .json file"


def read_cluster_file(path: Path) -> dict[str, Any]:
    """Return the content of a cluster file.

    Raises
    ------
    InvalidArgumentError
        The file is too long, is not YAML or JSON, or is not a mapping.
    UnavailableError
        The path is not a regular file.
    OSError
        The file cannot be opened.
    """
    content = given_file.bytes_of(path, _MOST_BYTES)
    try:
        text = content.decode()
        reported = json.loads(text) if path.suffix == ".json" else _read_yaml(text, path)
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidArgumentError):
            raise
        reason = " ".join(str(error).split())
        raise InvalidArgumentError(f"{path}: cannot be read: {reason}") from None
    if not isinstance(reported, dict) or not all(isinstance(key, str) for key in reported):
        raise InvalidArgumentError(f"{path}: must be a mapping of keys to values")
    return reported


def _read_yaml(text: str, path: Path) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise ImportError(_ADVICE) from error
    try:
        depth = 0
        for token in yaml.scan(text):
            # A few lines with aliases can expand to more than the memory.
            if isinstance(token, yaml.AliasToken):
                raise InvalidArgumentError(f"{path}: has an alias (*name): write it out")
            # Each level slows down the parser of the next level.
            name = type(token).__name__
            depth += name.endswith("StartToken") - name.endswith("EndToken")
            if depth > _MOST_DEPTH:
                raise InvalidArgumentError(f"{path}: is nested deeper than {_MOST_DEPTH}")
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
