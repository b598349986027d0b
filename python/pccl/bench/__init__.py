"""Measurements between processes of this machine: ``pccl bench`` and ``pccl tune``."""

from pccl.bench.collectives import Job, Row, measured, parse_size, run, sizes_between

__all__ = ["Job", "Row", "measured", "parse_size", "run", "sizes_between"]
