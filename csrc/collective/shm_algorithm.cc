// SPDX-License-Identifier: Apache-2.0
#include "csrc/collective/shm_algorithm.h"

namespace pccl {

using schedule::CollectiveKind;

ShmRound round_of(CollectiveKind kind, bool scatters_first, Rank root, std::size_t round) {
    switch (kind) {
        case CollectiveKind::kAllReduce:
            if (!scatters_first) return {.reduces = true};
            if (round % 2 != 0) return {};
            return {.in_parts = true, .reduces = true};
        case CollectiveKind::kReduceScatter:
            return {.in_parts = true, .reduces = true};
        case CollectiveKind::kAllGather:
            return {};
        case CollectiveKind::kAllToAll:
            return {.in_parts = true};
        case CollectiveKind::kBroadcast:
            return {.giver = root};
        case CollectiveKind::kScatter:
            return {.giver = root, .in_parts = true};
        case CollectiveKind::kReduce:
            return {.reader = root, .reduces = true};
        case CollectiveKind::kGather:
            return {.reader = root};
    }
    return {};
}

}  // namespace pccl
