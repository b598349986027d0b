// SPDX-License-Identifier: Apache-2.0

// Memory of this process that stands for that of GPUs.
#pragma once

#include <cstdint>

namespace pccl::fake_verbs {

/// Whether a range touches memory of a GPU (fake_verbs_set_gpu_memory()).
bool is_of_gpu(uint64_t address, uint64_t length);
/// Whether ibv_reg_mr refuses a range because nvidia_peermem is not loaded.
bool needs_peermem(uint64_t address, uint64_t length);

/// The errno of a registration of `length` bytes from `offset` on in a dma-buf, whose pages must be
/// those at `iova`; 0 where there is none.
int check_dmabuf(int fd, uint64_t offset, uint64_t length, uint64_t iova);

}  // namespace pccl::fake_verbs
