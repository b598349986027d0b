# SPDX-License-Identifier: Apache-2.0
"""Print what the build needs to know of the installed torch, as one CMake list."""

from pathlib import Path

import torch

facts = (
    torch.__version__.split("+")[0],
    Path(torch.__file__).parent,
    int(torch.compiled_with_cxx11_abi()),
)
print(";".join(map(str, facts)))
