#include "csrc/comm/board/board_algorithm.h"

namespace pccl::comm {

using schedule::CollectiveKind;
using Give = Beat::Give;
using Take = Beat::Take;

Beat beat_of(CollectiveKind kind, bool scatters_first, bool is_root, std::size_t beat) {
    switch (kind) {
        case CollectiveKind::kAllReduce:
            if (!scatters_first) return {.give = Give::kWhole, .take = Take::kReduce};
            if (beat % 2 != 0) return {.give = Give::kWhole, .take = Take::kCopy};
            return {.give = Give::kParts, .take = Take::kReduce, .takes_parts = true};
        case CollectiveKind::kReduceScatter:
            return {.give = Give::kParts, .take = Take::kReduce, .takes_parts = true};
        case CollectiveKind::kAllGather:
            return {.give = Give::kWhole, .take = Take::kCopy};
        case CollectiveKind::kAllToAll:
            return {.give = Give::kParts, .take = Take::kCopy, .takes_parts = true};
        case CollectiveKind::kBroadcast:
            if (is_root) return {.give = Give::kWhole};
            return {.take = Take::kCopy, .from_root = true};
        case CollectiveKind::kScatter:
            if (is_root) return {.give = Give::kParts};
            return {.take = Take::kCopy, .takes_parts = true, .from_root = true};
        case CollectiveKind::kReduce:
            if (is_root) return {.take = Take::kReduce};
            return {.give = Give::kWhole, .to_root = true};
        case CollectiveKind::kGather:
            if (is_root) return {.take = Take::kCopy};
            return {.give = Give::kWhole, .to_root = true};
    }
    return {};
}

}  // namespace pccl::comm
