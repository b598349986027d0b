#include "csrc/comm/board/board_cost.h"

#include <algorithm>

#include "csrc/base/ids.h"
#include "csrc/collective/fingerprint.h"

namespace pccl::comm {
namespace {

using schedule::CollectiveKind;

// Measured between processes of one host of 2 cores (pccl tune), blocks of 64 KiB to 4 MiB.
constexpr double kBeat = 0.4e-6;          // from a post to what the others post next
constexpr double kCrowdedBeat = 5e-6;     // the same where they take turns on a core
constexpr double kCopyByte = 0.045e-9;    // into a half, or out of another's
constexpr double kReduceByte = 0.027e-9;  // of one contribution
constexpr double kDirectRead = 1.5e-6;    // a call of the kernel
constexpr double kDirectByte = 0.12e-9;   // read from another process
constexpr double kPairByte = 0.08e-9;     // the same of what one process alone reads
constexpr std::size_t kInlineBytes = 128 * kKiB;
// Long windows keep the readers waiting for the first and the writers for the last.
constexpr std::size_t kLongestWindow = 512 * kKiB;

double blocks_of(CollectiveKind kind, int ranks) {
    const bool many = kind == CollectiveKind::kAllGather || kind == CollectiveKind::kGather ||
                      kind == CollectiveKind::kScatter || kind == CollectiveKind::kAllToAll ||
                      kind == CollectiveKind::kReduceScatter;
    return many ? ranks - 1 : 1;
}

std::size_t window_bytes(const BoardShape& board, CollectiveKind kind, BoardAlgorithm algorithm) {
    return std::min(divides_halves(kind, algorithm) ? board.part_bytes : board.half_bytes,
                    kLongestWindow);
}

/// Where two ranks alone know a length, so much goes over the board with kDirect, too.
std::size_t inline_bytes(const BoardShape& board) {
    return std::min(kInlineBytes, board.part_bytes);
}

/// Whether readers take the bytes from where they lie.
bool passes_board_by(const BoardShape& board, const BoardCall& call, BoardAlgorithm algorithm) {
    if (algorithm != BoardAlgorithm::kDirect) return false;
    return !is_per_pair(call.kind) || call.count * call.element_bytes > inline_bytes(board);
}

double predict(const BoardShape& board, const BoardCall& call, BoardAlgorithm algorithm) {
    const double ranks = board.ranks;
    const double beat = board.crowded ? kCrowdedBeat : kBeat;
    const double bytes = static_cast<double>(call.count * call.element_bytes);
    const bool direct = passes_board_by(board, call, algorithm);
    const double direct_byte = is_per_pair(call.kind) ? kPairByte : kDirectByte;
    const double windows =
        std::max(1.0, bytes / static_cast<double>(window_bytes(board, call.kind, algorithm)));
    if (scatters_first(call.kind, algorithm)) {
        const double others = bytes * (ranks - 1) / ranks;
        if (direct)
            return 2 * beat + 2 * (ranks - 1) * kDirectRead + others * 2 * direct_byte +
                   bytes * kReduceByte;
        return (windows / ranks + 1) * beat + (2 * others + bytes / ranks) * kCopyByte +
               bytes * kReduceByte;
    }
    const double blocks = blocks_of(call.kind, board.ranks);
    const bool parts = divides_halves(call.kind, algorithm);
    const double written = direct ? 0 : bytes * (parts ? blocks : 1);
    const double read = bytes * (reduces(call.kind) && !parts ? ranks - 1 : blocks);
    const double per_byte = direct ? direct_byte : reduces(call.kind) ? 0 : kCopyByte;
    return (direct ? 2 : windows) * beat + (direct ? (ranks - 1) * kDirectRead : 0) +
           written * kCopyByte + read * per_byte +
           (reduces(call.kind) ? (read + bytes) * kReduceByte : 0);
}

bool can_make(const BoardShape& board, CollectiveKind kind, BoardAlgorithm algorithm) {
    if (algorithm == BoardAlgorithm::kDirect) return board.reads_directly;
    if (algorithm == BoardAlgorithm::kTwoShot) return kind == CollectiveKind::kAllReduce;
    return true;
}

}  // namespace

std::vector<BoardCandidate> board_candidates(const BoardShape& board, const BoardCall& call) {
    std::vector<BoardCandidate> found;
    for (const BoardAlgorithm algorithm : kBoardAlgorithms) {
        if (!can_make(board, call.kind, algorithm)) continue;
        found.push_back({algorithm, predict(board, call, algorithm)});
    }
    // What costs the same goes by the algorithm that can do more.
    std::sort(found.begin(), found.end(), [](const BoardCandidate& a, const BoardCandidate& b) {
        return a.seconds != b.seconds ? a.seconds < b.seconds : a.algorithm > b.algorithm;
    });
    return found;
}

BoardPlan plan_on_board(const BoardShape& board, const BoardCall& call, BoardAlgorithm algorithm) {
    const std::size_t grain = std::max<std::size_t>(kCacheLine / call.element_bytes, 1);
    if (algorithm == BoardAlgorithm::kDirect) {
        const auto parts =
            static_cast<std::size_t>(scatters_first(call.kind, algorithm) ? board.ranks : 1);
        const std::size_t all = (call.count + parts - 1) / parts;
        constexpr std::size_t kAnyLength = std::size_t{1} << 48;
        return {.algorithm = algorithm,
                .window = is_per_pair(call.kind) ? kAnyLength : (all + grain) / grain * grain,
                .inline_bytes = inline_bytes(board)};
    }
    const std::size_t bytes = window_bytes(board, call.kind, algorithm);
    return {.algorithm = algorithm, .window = bytes / call.element_bytes / grain * grain};
}

}  // namespace pccl::comm
