// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/text/printable.h"

#include <algorithm>
#include <array>

namespace pccl {
namespace {

struct CharacterRange {
    char32_t first;
    char32_t last;
};
/// Control characters, invisible format characters, and line separators (Unicode 16).
constexpr std::array kHidden = {
    CharacterRange{0x00, 0x1f},       CharacterRange{0x7f, 0x9f},
    CharacterRange{0xad, 0xad},       CharacterRange{0x61c, 0x61c},
    CharacterRange{0x180e, 0x180e},   CharacterRange{0x200b, 0x200f},
    CharacterRange{0x2028, 0x202e},   CharacterRange{0x2060, 0x206f},
    CharacterRange{0xfeff, 0xfeff},   CharacterRange{0xfff9, 0xfffb},
    CharacterRange{0xe0000, 0xe0fff},
};

bool is_hidden(char32_t character) {
    return std::any_of(kHidden.begin(), kHidden.end(), [&](const CharacterRange& each) {
        return character >= each.first && character <= each.last;
    });
}

bool is_white(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Returns the length of a character with this first byte; 0 for an invalid one.
std::size_t bytes_behind(unsigned char first) {
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) return 2;
    if (first >= 0xe0 && first <= 0xef) return 3;
    return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/// Returns the length of the first character of `text`; 0 where it is not UTF-8, or invisible.
std::size_t visible_bytes(std::string_view text) {
    constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t bytes = bytes_behind(first);
    if (bytes == 0 || bytes > text.size()) return 0;
    char32_t character = bytes == 1 ? first : first & (0xffU >> (bytes + 1));
    for (const char each : text.substr(1, bytes - 1)) {
        const auto next = static_cast<unsigned char>(each);
        if ((next & 0xc0U) != 0x80) return 0;
        character = character << 6U | (next & 0x3fU);
    }
    const bool is_surrogate = character >= 0xd800 && character <= 0xdfff;
    if (character < kSmallest.at(bytes) || character > 0x10ffff || is_surrogate) return 0;
    return is_hidden(character) ? 0 : bytes;
}

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80; }

}  // namespace

std::string printable(std::string_view text, std::size_t longest) {
    std::string line;
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t bytes = visible_bytes(text.substr(at));
        const std::size_t end = at + std::max<std::size_t>(bytes, 1);
        if (end > longest) return line + "...";
        if (bytes > 0)
            line += text.substr(at, bytes);
        else if (is_white(text[at]))
            line += ' ';
        else if (at == 0 || !continues_character(text[at]) || line.back() != '?')
            line += '?';
        at = end;
    }
    return line;
}

}  // namespace pccl
