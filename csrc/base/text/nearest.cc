// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/text/nearest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"

namespace pccl {
namespace {

std::size_t edits_between(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
        }
    }
    return row.back();
}

}  // namespace

std::string_view nearest(std::string_view text, std::span<const std::string_view> names) {
    std::string_view best;
    std::size_t fewest = text.size();
    for (const std::string_view name : names) {
        const std::size_t edits = edits_between(text, name);
        if (3 * edits > name.size() || edits >= fewest) continue;
        fewest = edits;
        best = name;
    }
    return best;
}

std::string did_you_mean(std::string_view text, std::span<const std::string_view> names,
                         std::string_view prefix) {
    constexpr std::size_t kLongest = 64;
    const std::string_view meant = nearest(text.substr(0, kLongest), names);
    return meant.empty() ? "" : concat("did you mean ", prefix, meant, "?");
}

}  // namespace pccl
