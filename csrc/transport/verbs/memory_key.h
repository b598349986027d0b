// SPDX-License-Identifier: Apache-2.0

// Key of the RDMA transport in a memory descriptor.
#pragma once

#include <cstdint>
#include <vector>

#include <pccl/status.h>
#include "csrc/abi/memory.h"

namespace pccl::transport::verbs {

struct RemoteKey {
    static constexpr std::size_t kMostDevices =
        8;  // of a process: each port of port_choice.h may have one

    std::uint64_t address = 0;           // of the first byte, in the owner's process
    std::vector<std::uint32_t> devices;  // rkey of each device of the owner, in its order

    bool operator==(const RemoteKey&) const = default;
};

/// Adds the key to a descriptor, with a check value over the descriptor's identity: a device
/// compares keys alone, and these are short. Errors as of transport::add_key().
[[nodiscard]] Status add_remote_key(abi::MemoryDescriptor& memory, const RemoteKey& key);
/// Returns the key of a descriptor of any origin. kUnsupported where it has none, kInvalidArgument
/// where it is malformed, kUnavailable where it belongs to another registration.
[[nodiscard]] Result<RemoteKey> remote_key_of(const abi::MemoryDescriptor& memory);

}  // namespace pccl::transport::verbs
