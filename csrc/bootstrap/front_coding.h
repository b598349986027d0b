// SPDX-License-Identifier: Apache-2.0

// Compact coding of texts that differ little from their predecessors, such as the endpoints of one
// host, which differ in numbers only.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "csrc/base/bytes.h"

namespace pccl::bootstrap {

/// Writes the texts, each of at most 64 KiB - 1.
void write_front_coded(std::span<const std::string> texts, ByteWriter& out);

/// Reads `count` texts from untrusted bytes, and calls `take` with each. Returns kInvalidArgument
/// where a text is longer than `longest`, or refers to bytes beyond the end of its predecessor; and
/// the first error of `take`.
[[nodiscard]] Status read_front_coded(ByteReader& in, std::size_t count, std::size_t longest,
                                      const std::function<Status(std::string_view)>& take);

}  // namespace pccl::bootstrap
