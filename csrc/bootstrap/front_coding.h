// Texts of which each differs little from the one before, in few bytes: of the endpoints of a host,
// numbers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "csrc/base/bytes.h"

namespace pccl::bootstrap {

/// At most 64 KiB - 1 each.
void write_front_coded(std::span<const std::string> texts, ByteWriter& out);

/// `count` of them from bytes of any origin. kInvalidArgument where one is longer than `longest`,
/// or differs from the one before behind its end.
[[nodiscard]] Result<std::vector<std::string>> read_front_coded(ByteReader& in, std::size_t count,
                                                                std::size_t longest);

}  // namespace pccl::bootstrap
