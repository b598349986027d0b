// SPDX-License-Identifier: Apache-2.0

// Lines of words and numbers, the format of small files that people may edit.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace pccl {

/// Removes the first word of `line` and returns it; empty at the end of the line.
inline std::string_view next_word(std::string_view& line) {
    constexpr std::string_view kSpace = " \t\r";
    line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(kSpace));
    line.remove_prefix(word.size());
    return word;
}

/// Removes the first line of `text` and returns it without its newline.
inline std::string_view next_line(std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    return line;
}

/// Removes the first item of a list with `separator`s, and returns it without the blanks around it.
inline std::string_view next_item(std::string_view& list, char separator = ',') {
    constexpr std::string_view kBlank = " \t";
    std::string_view item = list.substr(0, list.find(separator));
    list.remove_prefix(std::min(item.size() + 1, list.size()));
    item.remove_prefix(std::min(item.find_first_not_of(kBlank), item.size()));
    return item.substr(0, item.find_last_not_of(kBlank) + 1);
}

/// Returns whether a line is empty, or starts with #.
inline bool is_comment(std::string_view line) {
    const std::string_view word = next_word(line);
    return word.empty() || word.starts_with('#');
}

/// Parses the whole word as a number in [low, high].
template <typename Number>
std::optional<Number> number_in(std::string_view word, Number low, Number high) {
    Number value{};
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, value);
    if (error != std::errc{} || stop != end || !(value >= low && value <= high))
        return std::nullopt;
    return value;
}

}  // namespace pccl
