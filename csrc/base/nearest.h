// What somebody meant who wrote a name that there is not.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "csrc/base/export.h"

namespace pccl {

/// Of `names`, the one that takes the fewest edits to become `text` (characters put in, left out or
/// replaced: V. Levenshtein, 1966); empty where each takes more than a third of its length.
[[nodiscard]] PCCL_API std::string_view nearest(std::string_view text,
                                                std::span<const std::string_view> names);

/// "did you mean <prefix><nearest>?", of the first 64 characters of `text`; empty where nothing is
/// near.
[[nodiscard]] PCCL_API std::string did_you_mean(std::string_view text,
                                                std::span<const std::string_view> names,
                                                std::string_view prefix = {});

}  // namespace pccl
