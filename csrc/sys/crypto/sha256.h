// SPDX-License-Identifier: Apache-2.0

// SHA-256 (FIPS 180-4), which distinguishes files of any origin.
#pragma once

#include <string>
#include <string_view>

#include "csrc/sys/crypto/hmac.h"

namespace pccl::sys {

[[nodiscard]] PCCL_API Digest sha256(std::string_view bytes);
/// Returns 64 hexadecimal digits.
[[nodiscard]] PCCL_API std::string to_hex(const Digest& digest);

}  // namespace pccl::sys
