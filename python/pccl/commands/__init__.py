"""The commands of ``pccl``, a module for each."""
