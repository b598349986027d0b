// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/launch/pcie_schedules.h"

#include <string_view>

#include "csrc/schedule/generators/generators.h"

namespace pccl::device {
namespace {

std::string_view name_over_pcie(CollectiveKind kind, int ranks) {
    switch (kind) {
        case CollectiveKind::kAllReduce:
            return ranks == 2 ? "ring" : "two_shot";
        case CollectiveKind::kBroadcast:  // the root of a ring writes each byte once
        case CollectiveKind::kReduce:
            return "ring";
        default:
            return "one_shot";
    }
}

}  // namespace

Result<schedule::SourcePtr> schedule_over_pcie(CollectiveKind kind, int ranks) {
    return schedule::built_in(name_over_pcie(kind, ranks), kind);
}

bool averages_integers(const Collective& collective) {
    return reduces(collective.kind) && collective.op == ReduceOp::kAvg &&
           is_integer(collective.type);
}

}  // namespace pccl::device
