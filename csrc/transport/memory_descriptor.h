// Memory descriptors on their way between processes, and the keys of transports in them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "csrc/abi/memory.h"
#include "csrc/base/status.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::transport {

/// Below 256 bytes, the same for the same descriptor.
[[nodiscard]] PCCL_API std::string serialise(const abi::MemoryDescriptor& memory);

/// From bytes of any origin: kInvalidArgument names the field or the place, kUnsupported another
/// version than abi::kMemoryVersion.
[[nodiscard]] PCCL_API Result<abi::MemoryDescriptor> parse_memory_descriptor(
    std::string_view bytes);

/// The key of one transport, which that transport reads; nullopt where it has none. Lies in
/// `memory`.
[[nodiscard]] PCCL_API std::optional<std::string_view> key_of(const abi::MemoryDescriptor& memory,
                                                              TransportKind kind);

/// kInvalidArgument where there is one already, kResourceExhausted where there is no room.
[[nodiscard]] PCCL_API Status add_key(abi::MemoryDescriptor& memory, TransportKind kind,
                                      std::string_view key);

}  // namespace pccl::transport
