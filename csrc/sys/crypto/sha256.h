// SPDX-License-Identifier: Apache-2.0

// SHA-256 (FIPS 180-4), which distinguishes files of any origin, its HMAC for handshakes, and
// random bytes for secrets, from OpenSSL's libcrypto.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <pccl/status.h>

namespace pccl::sys {

using Digest = std::array<std::uint8_t, 32>;

/// Returns the HMAC-SHA-256 (RFC 2104).
[[nodiscard]] PCCL_API Digest hmac_sha256(std::span<const std::uint8_t> key,
                                          std::span<const std::uint8_t> message);
/// Compares in a time that does not depend on the position of a difference.
[[nodiscard]] PCCL_API bool equal_in_constant_time(const Digest& a, const Digest& b);
/// Fills `into` with random bytes fit for secrets. kUnavailable when the system has no entropy.
[[nodiscard]] PCCL_API Status fill_random(std::span<std::uint8_t> into);

[[nodiscard]] PCCL_API Digest sha256(std::string_view bytes);
/// Returns 64 hexadecimal digits.
[[nodiscard]] PCCL_API std::string to_hex(const Digest& digest);

}  // namespace pccl::sys
