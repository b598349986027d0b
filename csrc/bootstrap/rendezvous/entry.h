// SPDX-License-Identifier: Apache-2.0

// Bounds of keys and values, which every store checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"

namespace pccl::bootstrap {

inline constexpr std::size_t kLongestKey = 256;
inline constexpr std::size_t kLongestValue = 64 * kKiB;

[[nodiscard]] inline Status check_key(std::string_view key) {
    if (!key.empty() && key.size() <= kLongestKey) return Status::ok();
    return Status::invalid_argument(concat("a key of ", key.size(), " bytes (\"", key.substr(0, 40),
                                           "\"): use 1 to ", kLongestKey));
}

[[nodiscard]] inline Status check_entry(std::string_view key, std::string_view value) {
    PCCL_TRY(check_key(key));
    if (value.size() <= kLongestValue) return Status::ok();
    return Status::invalid_argument(concat("the value of \"", key, "\" has ", value.size(),
                                           " bytes; a store takes at most ", kLongestValue));
}

/// Returns the value of counter `key`, which has this `text` (null: none, which counts as 0), plus
/// `delta`. Returns kInvalidArgument when the text is no number, or the sum overflows.
[[nodiscard]] Result<std::int64_t> sum_of(std::string_view key, const std::string* text,
                                          std::int64_t delta);

}  // namespace pccl::bootstrap
