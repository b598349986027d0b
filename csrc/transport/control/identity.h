// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace pccl::transport {

/// Name of a group in a handshake; random, not secret.
using GroupId = std::array<std::uint8_t, 16>;
/// Key that the ranks of a group share; never sent.
using Secret = std::array<std::uint8_t, 32>;

}  // namespace pccl::transport
