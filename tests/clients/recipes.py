# SPDX-License-Identifier: Apache-2.0
"""Blocks of docs/guide/frameworks.md as programs of clients."""

from __future__ import annotations

from pathlib import Path

from support.markdown import blocks_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "frameworks.md"

DATA = """
import sys
import torch
import torch.distributed as dist
from report import report
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)
x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)
"""


def recipe(word: str) -> str:
    """Return the block with a word, for the backend and the number of ranks of the arguments."""
    (block,) = [block for block in blocks_of(PAGE, "python") if word in block.text]
    assert '"pccl"' in block.text
    return block.text.replace('"pccl"', "sys.argv[1]").replace("devices=2", "devices=world_size")


def program(folder: Path, *parts: str) -> Path:
    """Write a program that consists of these parts."""
    file = folder / "train.py"
    file.write_text("".join((DATA, "world_size = int(sys.argv[2])\n", *parts)))
    return file
