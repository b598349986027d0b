# SPDX-License-Identifier: Apache-2.0
"""What PyTorch calls differently in the versions that PCCL works with."""

import torch.distributed as dist

# Before 2.13 these had longer names, which later versions deprecate.
if hasattr(dist, "all_gather_single"):
    all_gather_single = dist.all_gather_single
    reduce_scatter_single = dist.reduce_scatter_single
else:
    all_gather_single = dist.all_gather_into_tensor
    reduce_scatter_single = dist.reduce_scatter_tensor
# Before 2.13 Python cannot read Work.exception().
HAS_WORK_EXCEPTION = hasattr(dist, "all_gather_single")
