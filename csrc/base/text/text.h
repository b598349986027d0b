// SPDX-License-Identifier: Apache-2.0

// Join of values into one string, for messages: concat("rank ", 3, " left").
//
// It does not use streams: messages are equal in every locale.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

namespace pccl {

inline void append(std::string& text, std::string_view part) { text += part; }
inline void append(std::string& text, char part) { text += part; }

/// Appends a number: integers in base 10, floating point in the fewest digits that restore the
/// value.
template <typename Number>
    requires std::is_arithmetic_v<Number>
void append(std::string& text, Number number) {
    if constexpr (std::same_as<Number, bool>) {
        text += number ? "true" : "false";
    } else {
        std::array<char, 64> digits;
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
        text.append(digits.data(), end);
    }
}

template <typename... Parts>
[[nodiscard]] std::string concat(const Parts&... parts) {
    std::string text;
    (append(text, parts), ...);
    return text;
}

}  // namespace pccl
