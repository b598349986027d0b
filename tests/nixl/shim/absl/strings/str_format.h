// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace absl {

/// Of numbers alone, at most 127 characters.
template <typename... Values>
std::string StrFormat(const char* format, Values... values) {
    std::array<char, 128> text{};
    std::snprintf(text.data(), text.size(), format, values...);
    return text.data();
}

}  // namespace absl
