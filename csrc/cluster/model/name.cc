// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/model/name.h"

#include <string>

#include "csrc/base/text/nearest.h"
#include "csrc/base/text/text.h"

namespace pccl::cluster {

Status no_such(const Noun& noun, std::string_view name, std::span<const std::string_view> names) {
    const std::string meant = did_you_mean(name, names);
    std::string known;
    for (const std::string_view each : names) known += concat(known.empty() ? "" : ", ", each);
    return Status::invalid_argument(
        concat("there is no ", noun.one, " ", name,
               meant.empty() ? concat("; ", noun.many, " are: ", known.empty() ? "none" : known)
                             : concat("; ", meant)));
}

}  // namespace pccl::cluster
