// Ranges of sizes as users write them.
#pragma once

#include <string>
#include <string_view>

#include "csrc/base/status.h"
#include "csrc/schedule/source.h"

namespace pccl::capsule {

/// For no size: what has it is used by name alone.
inline constexpr schedule::SizeRange kByName{.least = 1, .most = 0};

/// "1MB..", "..64KB", "64K..1M", ".." for any, "by name" for none: bytes, or K, M or G of 1024,
/// with or without B; both ends belong to it.
[[nodiscard]] PCCL_API Result<schedule::SizeRange> parse_sizes(std::string_view text);
/// What parse_sizes() takes for it, in the largest units that give it exactly.
[[nodiscard]] PCCL_API std::string to_text(const schedule::SizeRange& sizes);

}  // namespace pccl::capsule
