"""The command ``pccl``: ``main.py``, and a module for each command."""

from pccl.cli.main import main

__all__ = ["main"]
