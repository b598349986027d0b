#include "csrc/schedule/cost.h"

#include <bit>

namespace pccl::schedule {
namespace {

double log2_ceil(int ranks) {
    return static_cast<double>(std::bit_width(static_cast<unsigned>(ranks - 1)));
}

/// Ranks beyond the largest power of two fold in before and out after.
double fold_rounds(int ranks) { return std::has_single_bit(static_cast<unsigned>(ranks)) ? 0 : 2; }

Cost ring(CollectiveKind kind, double n, double bytes) {
    switch (kind) {
        case CollectiveKind::kAllReduce:
            return {2 * (n - 1), 4 * (n - 1), 2 * bytes * (n - 1) / n, bytes * (n - 1) / n};
        case CollectiveKind::kAllGather:
            return {n - 1, 2 * (n - 1), (n - 1) * bytes, 0};
        case CollectiveKind::kReduceScatter:
            return {n - 1, 2 * (n - 1), (n - 1) * bytes, (n - 1) * bytes};
        case CollectiveKind::kReduce:
            return {n - 1, 2, bytes, bytes};
        default:
            return {n - 1, 2, bytes, 0};
    }
}

Cost one_shot(CollectiveKind kind, double n, double bytes) {
    switch (kind) {
        case CollectiveKind::kAllReduce:
            return {1, 2 * (n - 1), (n - 1) * bytes, (n - 1) * bytes};
        case CollectiveKind::kReduceScatter:
            return {1, 2 * (n - 1), (n - 1) * bytes, (n - 1) * bytes};
        case CollectiveKind::kReduce:
            return {1, n - 1, (n - 1) * bytes, (n - 1) * bytes};
        case CollectiveKind::kBroadcast:
        case CollectiveKind::kGather:
        case CollectiveKind::kScatter:
            return {1, n - 1, (n - 1) * bytes, 0};
        default:
            return {1, 2 * (n - 1), (n - 1) * bytes, 0};
    }
}

Cost binomial(CollectiveKind kind, double rounds, double n, double bytes) {
    const bool moves_blocks = kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
    const double sent = moves_blocks ? (n - 1) * bytes : rounds * bytes;
    return {rounds, rounds, sent, kind == CollectiveKind::kReduce ? sent : 0};
}

Cost butterfly(Algorithm algorithm, CollectiveKind kind, int ranks, double bytes) {
    const double n = ranks;
    const double rounds = log2_ceil(ranks) + fold_rounds(ranks);
    if (kind == CollectiveKind::kAllGather) return {rounds, 2 * rounds, (n - 1) * bytes, 0};
    if (kind == CollectiveKind::kReduceScatter)
        return {rounds, 2 * rounds, (n - 1) * bytes, (n - 1) * bytes};
    if (algorithm == Algorithm::kRecursiveDoubling)
        return {rounds, 2 * rounds, rounds * bytes, rounds * bytes};
    const double folded = fold_rounds(ranks) > 0 ? bytes : 0;
    return {2 * log2_ceil(ranks) + fold_rounds(ranks), 4 * rounds, 2 * bytes * (n - 1) / n + folded,
            bytes * (n - 1) / n + folded};
}

}  // namespace

Cost cost(Algorithm algorithm, const Shape& shape, std::size_t block_bytes) {
    if (shape.ranks == 1) return {};
    const double n = shape.ranks;
    const double rounds = log2_ceil(shape.ranks);
    const auto bytes = static_cast<double>(block_bytes);
    switch (algorithm) {
        case Algorithm::kRing:
            return ring(shape.kind, n, bytes);
        case Algorithm::kDoubleBinaryTree:
            return shape.kind == CollectiveKind::kAllReduce
                       ? Cost{2 * rounds + 2, 8, 3 * bytes, 2 * bytes}
                       : Cost{rounds + 1, 4, 2 * bytes, shape.kind == CollectiveKind::kReduce ? 2 * bytes : 0};
        case Algorithm::kRecursiveDoubling:
        case Algorithm::kRecursiveHalving:
            return butterfly(algorithm, shape.kind, shape.ranks, bytes);
        case Algorithm::kBruck:
            return shape.kind == CollectiveKind::kAllGather
                       ? Cost{rounds, 2 * rounds, (n - 1) * bytes, 0}
                       : Cost{rounds, 2 * rounds, rounds * n / 2 * bytes, 0};
        case Algorithm::kOneShot:
            return one_shot(shape.kind, n, bytes);
        case Algorithm::kTwoShot:
            return {2, 4 * (n - 1), 2 * bytes * (n - 1) / n, bytes * (n - 1) / n};
        case Algorithm::kBinomial:
            return binomial(shape.kind, rounds, n, bytes);
        case Algorithm::kPairwise:
            return {n - 1, 2 * (n - 1), (n - 1) * bytes, 0};
    }
    return {};
}

}  // namespace pccl::schedule
