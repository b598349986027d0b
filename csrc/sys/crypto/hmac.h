// The little cryptography that handshakes need, from OpenSSL's libcrypto.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "csrc/base/status.h"

namespace pccl::sys {

using Digest = std::array<std::uint8_t, 32>;

/// HMAC-SHA-256 (RFC 2104).
[[nodiscard]] PCCL_API Digest hmac_sha256(std::span<const std::uint8_t> key,
                                          std::span<const std::uint8_t> message);
/// In a time that does not depend on where they differ.
[[nodiscard]] PCCL_API bool equal_in_constant_time(const Digest& a, const Digest& b);
/// Fit for secrets. kUnavailable when the system has no entropy to give.
[[nodiscard]] PCCL_API Status fill_random(std::span<std::uint8_t> into);

}  // namespace pccl::sys
