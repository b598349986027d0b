// SPDX-License-Identifier: Apache-2.0

// Descriptors of memory that only their numbers tell apart.
#pragma once

#include "tests/cpp/p2p/pair.h"

namespace pccl::p2p {

inline abi::MemoryDescriptor memory(std::uint64_t id) {
    abi::MemoryDescriptor descriptor{};
    descriptor.id = id;
    return descriptor;
}

}  // namespace pccl::p2p
