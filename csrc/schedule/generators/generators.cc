// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/generators/generators.h"

#include <algorithm>
#include <string>
#include <utility>

#include <pccl/status.h>
#include "csrc/base/assert.h"
#include "csrc/base/text/text.h"
#include "csrc/schedule/generators/family.h"

namespace pccl::schedule {
namespace {

// If two sources have the same predicted cost, the first one is chosen.
constexpr Family kFamilies[] = {
    ring,  chain,    recursive_doubling, recursive_halving, double_binary_tree,
    bruck, one_shot, two_shot,           binomial,          pairwise,
    pat,   swing,
};

std::shared_ptr<const Catalogue> make_catalogue() {
    auto catalogue = std::make_shared<Catalogue>();
    for (const Family family : kFamilies)
        for (ScheduleSource& source : family()) {
            const Status added =
                catalogue->add(std::make_shared<const ScheduleSource>(std::move(source)));
            PCCL_ASSERT(added.is_ok());
        }
    return catalogue;
}

std::vector<std::string> make_names() {
    std::vector<std::string> names;
    for (const Family family : kFamilies)
        for (const ScheduleSource& source : family())
            if (std::ranges::find(names, source.name) == names.end()) names.push_back(source.name);
    return names;
}

}  // namespace

const std::shared_ptr<const Catalogue>& built_in() {
    static const auto* const catalogue = new auto(make_catalogue());  // never destroyed
    return *catalogue;
}

const std::vector<std::string>& built_in_names() {
    static const auto* const names = new auto(make_names());  // never destroyed
    return *names;
}

Result<SourcePtr> built_in(std::string_view name, CollectiveKind kind) {
    if (SourcePtr found = built_in()->find(name, kind)) return found;
    std::string all;
    for (const std::string& known : built_in_names()) {
        if (known == name)
            return Status::unsupported(concat(name, " does not make ", to_string(kind)));
        all += concat(all.empty() ? "" : ", ", known);
    }
    return Status::invalid_argument(concat("'", name, "' is no algorithm; there are ", all));
}

Result<Schedule> generate(std::string_view name, const Shape& shape) {
    PCCL_ASSIGN_OR_RETURN(const SourcePtr source, built_in(name, shape.kind));
    return generate(*source, shape);
}

}  // namespace pccl::schedule
