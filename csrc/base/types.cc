// SPDX-License-Identifier: Apache-2.0
#include <pccl/types.h>
#include "csrc/base/text/text.h"

namespace pccl {

std::string_view to_string(CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::kAllReduce:
            return "all_reduce";
        case CollectiveKind::kAllGather:
            return "all_gather";
        case CollectiveKind::kReduceScatter:
            return "reduce_scatter";
        case CollectiveKind::kBroadcast:
            return "broadcast";
        case CollectiveKind::kReduce:
            return "reduce";
        case CollectiveKind::kGather:
            return "gather";
        case CollectiveKind::kScatter:
            return "scatter";
        case CollectiveKind::kAllToAll:
            return "all_to_all";
    }
    return "unknown";
}

std::string names_of_collectives() {
    std::string names;
    for (int kind = 0; kind <= static_cast<int>(CollectiveKind::kAllToAll); ++kind)
        names += concat(kind == 0 ? "" : ", ", to_string(static_cast<CollectiveKind>(kind)));
    return names;
}

std::optional<CollectiveKind> collective_named(std::string_view name) {
    for (int kind = 0; kind <= static_cast<int>(CollectiveKind::kAllToAll); ++kind)
        if (to_string(static_cast<CollectiveKind>(kind)) == name)
            return static_cast<CollectiveKind>(kind);
    return std::nullopt;
}

bool is_rooted(CollectiveKind kind) {
    return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce ||
           kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
}

bool reduces(CollectiveKind kind) {
    return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduce ||
           kind == CollectiveKind::kReduceScatter;
}

bool is_per_pair(CollectiveKind kind) {
    return kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kGather ||
           kind == CollectiveKind::kScatter;
}

}  // namespace pccl
