// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/xml/xml_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <sstream>

namespace pccl::topo {
namespace {

bool is_hex(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    });
}

bool is_hex_of(std::string_view text, std::size_t least, std::size_t most) {
    return text.size() >= least && text.size() <= most && is_hex(text);
}

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return result;
}

}  // namespace

std::optional<std::string> parse_bus_id(std::string_view text) {
    constexpr std::size_t kLongestDomain = 8;
    const std::size_t dot = text.rfind('.');
    const std::size_t colon = text.rfind(':');
    if (dot == std::string_view::npos || colon == std::string_view::npos || dot < colon)
        return std::nullopt;
    const std::string_view device = text.substr(colon + 1, dot - colon - 1);
    const std::string_view function = text.substr(dot + 1);
    const std::size_t first = text.substr(0, colon).rfind(':');
    const bool has_domain = first != std::string_view::npos;
    const std::string_view domain = has_domain ? text.substr(0, first) : "0000";
    const std::string_view bus =
        text.substr(has_domain ? first + 1 : 0, colon - (has_domain ? first + 1 : 0));
    if (!is_hex_of(domain, 1, kLongestDomain) || !is_hex_of(bus, 2, 2) ||
        !is_hex_of(device, 2, 2) || !is_hex_of(function, 1, 1))
        return std::nullopt;
    return lower(concat(domain, ":", bus, ":", device, ".", function));
}

namespace {

/// Removes the space before "/>", which NCCL parses as an attribute without a name.
std::string without_spaces_at_ends(const std::string& text) {
    std::string result;
    result.reserve(text.size());
    bool is_quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '"') is_quoted = !is_quoted;
        if (is_quoted || text.compare(i, 3, " />") != 0) result += text[i];
    }
    return result;
}

}  // namespace

std::string to_text(const pugi::xml_document& document) {
    std::ostringstream out;
    document.save(out, "  ", pugi::format_indent | pugi::format_no_declaration,
                  pugi::encoding_utf8);
    return without_spaces_at_ends(std::move(out).str());
}

}  // namespace pccl::topo
