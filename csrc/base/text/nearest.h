// SPDX-License-Identifier: Apache-2.0

// Suggestions for a misspelt name.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <pccl/export.h>

namespace pccl {

/// Returns the one of `names` with the fewest edits from `text` (characters put in, left out or
/// replaced: V. Levenshtein, 1966); empty where each takes more than a third of its length.
[[nodiscard]] PCCL_API std::string_view nearest(std::string_view text,
                                                std::span<const std::string_view> names);

/// Returns "did you mean <prefix><nearest>?", for the first 64 characters of `text`; empty where no
/// name is near.
[[nodiscard]] PCCL_API std::string did_you_mean(std::string_view text,
                                                std::span<const std::string_view> names,
                                                std::string_view prefix = {});

}  // namespace pccl
