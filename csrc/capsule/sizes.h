// SPDX-License-Identifier: Apache-2.0

// Text forms of ranges of sizes and of numbers of ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/schedule/source.h"

namespace pccl::capsule {

/// Empty range: a schedule with it is selected only by name.
inline constexpr schedule::SizeRange kByName{.least = 1, .most = 0};

/// Parses "1MB..", "..64KB", "64K..1M", ".." for any size, and "by name" for none. Units are bytes,
/// or K, M or G of 1024, with or without B; both ends are included.
[[nodiscard]] PCCL_API Result<schedule::SizeRange> parse_sizes(std::string_view text);
/// Returns a text for parse_sizes(), in the largest units that represent the range exactly.
[[nodiscard]] PCCL_API std::string to_text(const schedule::SizeRange& sizes);

/// Returns "2..4 8" for ascending numbers, with runs of consecutive numbers shortened.
[[nodiscard]] std::string ranks_text(const std::vector<int>& ranks);

}  // namespace pccl::capsule
