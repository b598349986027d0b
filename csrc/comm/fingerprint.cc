#include "csrc/comm/fingerprint.h"

#include <cstring>

#include "csrc/base/text.h"
#include "csrc/comm/arithmetic.h"
#include "csrc/comm/collective_operation.h"
#include "csrc/schedule/generators.h"

namespace pccl::comm {

bool is_per_pair(schedule::CollectiveKind kind) {
    return kind == schedule::CollectiveKind::kAllToAll ||
           kind == schedule::CollectiveKind::kGather || kind == schedule::CollectiveKind::kScatter;
}

std::string describe(const abi::CollectiveHeader& header) {
    const auto kind = static_cast<schedule::CollectiveKind>(header.kind);
    const std::string what =
        reduces(kind) ? concat(to_string(static_cast<ReduceOp>(header.reduce_op)), " of ") : "";
    return concat(schedule::to_string(kind), " #", header.sequence, " (", what, header.count, " ",
                  to_string(static_cast<DataType>(header.data_type)), ", root ", header.root,
                  ", by ", schedule::to_string(static_cast<schedule::Algorithm>(header.algorithm)),
                  " in windows of ", header.window, ")");
}

Status compare(const abi::CollectiveHeader& ours, const abi::CollectiveHeader& theirs, Rank peer) {
    if (std::memcmp(&ours, &theirs, sizeof ours) == 0) return Status::ok();
    if (theirs.magic != abi::kCollectiveMagic)
        return Status::peer_lost(peer, concat("rank ", peer, " sent bytes that are no collective"));
    return Status::mismatch(
        peer,
        concat("ranks disagree: this rank runs ", describe(ours), " but rank ", peer, " runs ",
               describe(theirs), "; call the same collectives in the same order on all ranks"));
}

}  // namespace pccl::comm
