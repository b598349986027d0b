"""Measurements between processes of this machine: ``pccl bench`` and ``pccl tune``."""

from pccl.bench.collectives import Job, Row, parse_size, run, sizes_between

__all__ = ["Job", "Row", "parse_size", "run", "sizes_between"]
