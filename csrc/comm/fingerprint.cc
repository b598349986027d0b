#include "csrc/comm/fingerprint.h"

#include <cstring>

#include "csrc/base/text.h"
#include "csrc/comm/arithmetic.h"
#include "csrc/comm/board/board_algorithm.h"
#include "csrc/comm/collective_operation.h"
#include "csrc/schedule/generators.h"

namespace pccl::comm {
namespace {

constexpr std::uint64_t kShownDigests = 1'000'000;

}  // namespace

std::string_view algorithm_name(std::uint8_t number) {
    if (number < kFirstBoardAlgorithm)
        return schedule::to_string(static_cast<schedule::Algorithm>(number));
    for (const BoardAlgorithm algorithm : kBoardAlgorithms)
        if (wire_number(algorithm) == number) return to_string(algorithm);
    return "unknown";
}

bool is_per_pair(schedule::CollectiveKind kind) {
    return kind == schedule::CollectiveKind::kAllToAll ||
           kind == schedule::CollectiveKind::kGather || kind == schedule::CollectiveKind::kScatter;
}

std::string describe(const abi::CollectiveHeader& header) {
    const auto kind = static_cast<schedule::CollectiveKind>(header.kind);
    const std::string what =
        reduces(kind) ? concat(to_string(static_cast<ReduceOp>(header.reduce_op)), " of ") : "";
    const std::string uneven =
        header.lengths == 0
            ? ""
            : concat(", blocks of different lengths, digest ", header.lengths % kShownDigests);
    return concat(schedule::to_string(kind), " #", header.sequence, " (", what, header.count, " ",
                  to_string(static_cast<DataType>(header.data_type)), uneven, ", root ",
                  header.root, ", by ", algorithm_name(header.algorithm), " in windows of ",
                  header.window, ")");
}

Status compare(const abi::CollectiveHeader& ours, const abi::CollectiveHeader& theirs,
               const Sides& sides) {
    const Rank peer = sides.peer;
    if (std::memcmp(&ours, &theirs, sizeof ours) == 0) return Status::ok();
    if (theirs.magic != abi::kCollectiveMagic)
        return Status::peer_lost(peer, concat("rank ", peer, " sent bytes that are no collective"));
    return Status::mismatch(
        peer, concat("ranks disagree: rank ", sides.self, " runs ", describe(ours), " but rank ",
                     peer, " runs ", describe(theirs),
                     "; call the same collectives in the same order on all ranks"));
}

}  // namespace pccl::comm
