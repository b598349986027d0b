# SPDX-License-Identifier: Apache-2.0
"""Entry point of ``python -m pccl``, which is the command ``pccl``."""

from pccl.cli import main

main()
