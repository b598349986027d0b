// SPDX-License-Identifier: Apache-2.0

// Heap memory of either kind.
#pragma once

#include "csrc/transport/nvlink/heap_memory.h"

namespace pccl::transport::nvlink {

/// Allocates zeroed memory with a name, which is not mapped yet.
[[nodiscard]] Result<std::shared_ptr<HeapMemory>> make_heap_memory(const HeapMemory::Place& place,
                                                                   std::size_t bytes);
/// Takes an allocation of a peer, which is not mapped yet. The caller keeps ownership of
/// `descriptor`.
[[nodiscard]] Result<std::shared_ptr<HeapMemory>> import_heap_memory(const HeapMemory::Place& place,
                                                                     int descriptor,
                                                                     const HeapExtent& extent);

}  // namespace pccl::transport::nvlink
