// SPDX-License-Identifier: Apache-2.0

// Serialised memory descriptors, and the keys of transports in them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <pccl/status.h>
#include "csrc/abi/memory.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::transport {

/// Serialises a descriptor into less than 256 bytes; equal descriptors give equal bytes.
[[nodiscard]] PCCL_API std::string serialise(const abi::MemoryDescriptor& memory);

/// Parses bytes of any origin. kInvalidArgument names the field or the place; kUnsupported stands
/// for another version than abi::kMemoryVersion.
[[nodiscard]] PCCL_API Result<abi::MemoryDescriptor> parse_memory_descriptor(
    std::string_view bytes);

/// Returns the key of one transport, which only that transport interprets; nullopt where there is
/// none. The view points into `memory`.
[[nodiscard]] PCCL_API std::optional<std::string_view> key_of(const abi::MemoryDescriptor& memory,
                                                              TransportKind kind);

/// Adds the key of a transport. kInvalidArgument where it has one already, kResourceExhausted where
/// there is no room.
[[nodiscard]] PCCL_API Status add_key(abi::MemoryDescriptor& memory, TransportKind kind,
                                      std::string_view key);

}  // namespace pccl::transport
