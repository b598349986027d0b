# SPDX-License-Identifier: Apache-2.0
"""The command ``pccl``: ``main.py``, and a module for each command."""

from pccl.cli.main import main

__all__ = ["main"]
