// SPDX-License-Identifier: Apache-2.0
#include "csrc/collective/algorithm_list.h"

#include <algorithm>

#include "csrc/base/text/nearest.h"
#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/collective/shm_algorithm.h"
#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/schedule.h"

namespace pccl {
namespace {

struct Item {
    std::string_view collective;
    std::string_view algorithm;
};

Item take_item(std::string_view& list) {
    std::string_view item = next_item(list);
    const std::string_view collective = next_item(item, '=');
    return {collective, next_item(item, '\0')};
}

constexpr std::size_t kLongestShown = 32;

using Names = std::vector<std::string_view>;

bool has(const Names& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

std::string listed(const Names& names) {
    std::string text;
    for (const std::string_view name : names) text += concat(text.empty() ? "" : ", ", name);
    return text;
}

/// Returns all algorithms for a collective, over shared memory or links.
Names names_of(CollectiveKind kind, const schedule::Catalogue& catalogue) {
    Names names;
    for (const ShmAlgorithm algorithm : kShmAlgorithms)
        if (makes(algorithm, kind)) names.push_back(to_string(algorithm));
    for (const schedule::SourcePtr& source : catalogue.of(kind)) names.push_back(source->name);
    return names;
}

bool is_built_in(std::string_view name) {
    return std::ranges::find(schedule::built_in_names(), name) !=
               schedule::built_in_names().end() ||
           std::ranges::find(kShmAlgorithms, name, [](ShmAlgorithm algorithm) {
               return to_string(algorithm);
           }) != kShmAlgorithms.end();
}

Status check_item(const Item& item) {
    const auto kind = schedule::collective_named(item.collective);
    if (!kind || item.algorithm.empty())
        return Status::invalid_argument(
            concat("no collective and algorithm: '", item.collective.substr(0, kLongestShown),
                   item.algorithm.empty() ? "" : "=", item.algorithm.substr(0, kLongestShown),
                   "'; name algorithms as in all_reduce=ring,all_gather=bruck"));
    const Names names = names_of(*kind, *schedule::built_in());
    if (!is_built_in(item.algorithm) || has(names, item.algorithm)) return Status::ok();
    return Status::invalid_argument(
        concat(item.algorithm, " does not make ", item.collective, "; there are ", listed(names)));
}

}  // namespace

Status check_algorithm_list(std::string_view list) {
    while (!list.empty()) PCCL_TRY(check_item(take_item(list)));
    return Status::ok();
}

std::vector<std::string> unknown_algorithms(std::string_view list,
                                            const schedule::Catalogue& catalogue) {
    std::vector<std::string> lines;
    while (!list.empty()) {
        const Item item = take_item(list);
        const auto kind = schedule::collective_named(item.collective);
        if (!kind) continue;
        const Names names = names_of(*kind, catalogue);
        if (has(names, item.algorithm)) continue;
        const std::string_view requested = item.algorithm.substr(0, kLongestShown);
        const std::string meant = did_you_mean(requested, names);
        lines.push_back(concat("no algorithm is called ", requested,
                               meant.empty() ? "" : concat(" (", meant, ")"), "; for ",
                               item.collective, " there are ", listed(names)));
    }
    return lines;
}

std::string_view algorithm_listed(std::string_view list, CollectiveKind kind) {
    while (!list.empty()) {
        const Item item = take_item(list);
        if (item.collective == schedule::to_string(kind)) return item.algorithm;
    }
    return {};
}

}  // namespace pccl
