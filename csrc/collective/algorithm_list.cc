#include "csrc/collective/algorithm_list.h"

#include <algorithm>

#include "csrc/base/text.h"
#include "csrc/schedule/schedule.h"

namespace pccl {
namespace {

struct Item {
    std::string_view collective;
    std::string_view algorithm;
};

std::string_view take_until(char separator, std::string_view& text) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view taken = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return taken;
}

Item take_item(std::string_view& list) {
    std::string_view item = take_until(',', list);
    const std::string_view collective = take_until('=', item);
    return {collective, item};
}

}  // namespace

Status check_algorithm_list(std::string_view list) {
    while (!list.empty()) {
        const Item item = take_item(list);
        if (schedule::collective_named(item.collective) && !item.algorithm.empty()) continue;
        return Status::invalid_argument(
            concat("no collective and algorithm: '", item.collective.substr(0, 32),
                   item.algorithm.empty() ? "" : "=", item.algorithm.substr(0, 32),
                   "'; ask for algorithms as in all_reduce=ring,all_gather=bruck"));
    }
    return Status::ok();
}

std::string_view algorithm_listed(std::string_view list, CollectiveKind kind) {
    while (!list.empty()) {
        const Item item = take_item(list);
        if (item.collective == schedule::to_string(kind)) return item.algorithm;
    }
    return {};
}

}  // namespace pccl
