# SPDX-License-Identifier: Apache-2.0
"""``python -m pccl`` is the command ``pccl``."""

from pccl.cli import main

main()
