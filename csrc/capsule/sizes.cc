// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/sizes.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/capsule/limits.h"

namespace pccl::capsule {
namespace {

using schedule::SizeRange;

constexpr std::string_view kByNameText = "by name";
constexpr std::string_view kBetween = "..";

struct Unit {
    char letter;
    unsigned shift;
};
constexpr std::array<Unit, 3> kUnits{{{'G', 30}, {'M', 20}, {'K', 10}}};

std::optional<std::uint64_t> size_of(std::string_view text) {
    const auto drop_last = [&](char upper) {
        const bool is_there = !text.empty() && (text.back() & ~0x20) == upper;
        if (is_there) text.remove_suffix(1);
        return is_there;
    };
    static_cast<void>(drop_last('B'));
    unsigned shift = 0;
    for (const Unit& unit : kUnits)
        if (shift == 0 && drop_last(unit.letter)) shift = unit.shift;
    const auto number = number_in<std::uint64_t>(text, 0, kMostSize >> shift);
    if (!number) return std::nullopt;
    return *number << shift;
}

std::string text_of(std::uint64_t bytes) {
    for (const Unit& unit : kUnits)
        if (bytes != 0 && bytes % (1ULL << unit.shift) == 0)
            return concat(bytes >> unit.shift, unit.letter, "B");
    return concat(bytes);
}

}  // namespace

Result<SizeRange> parse_sizes(std::string_view text) {
    if (text == kByNameText) return kByName;
    const std::size_t between = text.find(kBetween);
    const auto refuse = [&] {
        return Status::invalid_argument(
            concat("no range of sizes: '", text.substr(0, 40),
                   "'; they are written 1MB.., ..64KB, 64KB..1MB, .. for any, or by name"));
    };
    if (between == std::string_view::npos) return refuse();
    const std::string_view least = text.substr(0, between);
    const std::string_view most = text.substr(between + kBetween.size());
    SizeRange sizes;
    const auto low = least.empty() ? sizes.least : size_of(least);
    const auto high = most.empty() ? sizes.most : size_of(most);
    if (!low || !high || *low > *high) return refuse();
    return SizeRange{.least = *low, .most = *high};
}

std::string to_text(const SizeRange& sizes) {
    if (sizes == kByName) return std::string(kByNameText);
    const SizeRange any;
    return concat(sizes.least == any.least ? "" : text_of(sizes.least), kBetween,
                  sizes.most == any.most ? "" : text_of(sizes.most));
}

std::string ranks_text(const std::vector<int>& ranks) {
    std::string text;
    for (std::size_t first = 0, next = 0; first < ranks.size(); first = next) {
        for (next = first + 1; next < ranks.size() && ranks[next] == ranks[next - 1] + 1;) ++next;
        append(text, concat(text.empty() ? "" : " ", ranks[first]));
        if (next - first > 1) append(text, concat("..", ranks[next - 1]));
    }
    return text;
}

}  // namespace pccl::capsule
