#include "csrc/cluster/model/name.h"

#include <string>

#include "csrc/base/nearest.h"
#include "csrc/base/text.h"

namespace pccl::cluster {

Status no_such(const Noun& noun, std::string_view name, std::span<const std::string_view> names) {
    const std::string_view meant = nearest(name.substr(0, 64), names);
    std::string known;
    for (const std::string_view each : names) known += concat(known.empty() ? "" : ", ", each);
    return Status::invalid_argument(
        concat("there is no ", noun.one, " ", name,
               meant.empty() ? concat("; ", noun.many, " are: ", known.empty() ? "none" : known)
                             : concat("; did you mean ", meant)));
}

}  // namespace pccl::cluster
