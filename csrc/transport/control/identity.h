#pragma once

#include <array>
#include <cstdint>

namespace pccl::transport {

/// Names a group in a handshake; random, not secret.
using GroupId = std::array<std::uint8_t, 16>;
/// Shared by the ranks of a group; never sent.
using Secret = std::array<std::uint8_t, 32>;

}  // namespace pccl::transport
