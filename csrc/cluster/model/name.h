// SPDX-License-Identifier: Apache-2.0

// Names of switches, devices and phases.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include <pccl/status.h>

namespace pccl::cluster {

/// Returns whether the text is 1 to 64 of A-Z a-z 0-9 . _ -
[[nodiscard]] inline bool is_name(std::string_view text) {
    constexpr std::size_t kMost = 64;
    return !text.empty() && text.size() <= kMost && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '_' || c == '-';
    });
}
/// Rule for names, for error messages.
constexpr std::string_view kNameRule = "1 to 64 of A-Z a-z 0-9 . _ -";

struct Noun {
    std::string_view one;
    std::string_view many;
};
/// Returns kInvalidArgument "there is no <one> <name>", with the nearest of `names`, or all of
/// them.
[[nodiscard]] Status no_such(const Noun& noun, std::string_view name,
                             std::span<const std::string_view> names);

}  // namespace pccl::cluster
