"""PCCL: a programmable collective communication library and ``torch.distributed`` backend."""

from pccl._version import __version__

__all__ = ["__version__"]
