#include "csrc/schedule/generators/generators.h"

#include <algorithm>
#include <array>
#include <bit>

#include "csrc/base/text.h"
#include "csrc/schedule/generators/catalogue.h"

namespace pccl::schedule {
namespace {

using enum Algorithm;
using enum CollectiveKind;

struct Entry {
    CollectiveKind kind;
    Algorithm algorithm;
    Program (*make)(const Member&);
};

// All algorithms of a kind follow each other: algorithms_for hands out a part of kAlgorithms.
constexpr auto kCatalogue = std::to_array<Entry>({
    {kAllReduce, kRing, ring_all_reduce},
    {kAllReduce, kDoubleBinaryTree, double_tree_all_reduce},
    {kAllReduce, kRecursiveDoubling, recursive_doubling_all_reduce},
    {kAllReduce, kRecursiveHalving, recursive_halving_all_reduce},
    {kAllReduce, kOneShot, one_shot_all_reduce},
    {kAllReduce, kTwoShot, two_shot_all_reduce},
    {kAllReduce, kPat, pat_all_reduce},
    {kAllGather, kRing, ring_all_gather},
    {kAllGather, kRecursiveDoubling, recursive_doubling_all_gather},
    {kAllGather, kBruck, bruck_all_gather},
    {kAllGather, kOneShot, one_shot_all_gather},
    {kAllGather, kPat, pat_all_gather},
    {kReduceScatter, kRing, ring_reduce_scatter},
    {kReduceScatter, kRecursiveHalving, recursive_halving_reduce_scatter},
    {kReduceScatter, kOneShot, one_shot_reduce_scatter},
    {kReduceScatter, kPat, pat_reduce_scatter},
    {kBroadcast, kRing, chain_broadcast},
    {kBroadcast, kDoubleBinaryTree, double_tree_broadcast},
    {kBroadcast, kOneShot, one_shot_broadcast},
    {kBroadcast, kBinomial, binomial_broadcast},
    {kReduce, kRing, chain_reduce},
    {kReduce, kDoubleBinaryTree, double_tree_reduce},
    {kReduce, kOneShot, one_shot_reduce},
    {kReduce, kBinomial, binomial_reduce},
    {kGather, kOneShot, one_shot_gather},
    {kGather, kBinomial, binomial_gather},
    {kScatter, kOneShot, one_shot_scatter},
    {kScatter, kBinomial, binomial_scatter},
    {kAllToAll, kBruck, bruck_all_to_all},
    {kAllToAll, kOneShot, one_shot_all_to_all},
    {kAllToAll, kPairwise, pairwise_all_to_all},
});

constexpr auto kAlgorithms = [] {
    std::array<Algorithm, kCatalogue.size()> algorithms{};
    std::ranges::transform(kCatalogue, algorithms.begin(), &Entry::algorithm);
    return algorithms;
}();

constexpr int kMaxRanks = 65536;
constexpr long long kMaxChunks = 1LL << 26;

const Entry* find_entry(Algorithm algorithm, CollectiveKind kind) {
    const auto* const found = std::ranges::find_if(kCatalogue, [&](const Entry& entry) {
        return entry.kind == kind && entry.algorithm == algorithm;
    });
    return found == kCatalogue.end() ? nullptr : found;
}

Status check_range(const Shape& shape) {
    const auto refuse = [](const auto&... text) {
        return Status::invalid_argument(concat(text...));
    };
    if (shape.ranks < 1 || shape.ranks > kMaxRanks) {
        return refuse("ranks is ", shape.ranks, ", must be 1 to ", kMaxRanks);
    }
    const int roots = is_rooted(shape.kind) ? shape.ranks : 1;
    if (shape.root < 0 || shape.root >= roots) {
        return refuse("root is ", shape.root, ", must be 0 to ", roots - 1);
    }
    if (shape.chunks < 1) return refuse("chunks is ", shape.chunks, ", must be at least 1");
    const int blocks_at_most = std::max(blocks(shape.kind, Buffer::kInput, shape.ranks),
                                        blocks(shape.kind, Buffer::kOutput, shape.ranks));
    if (static_cast<long long>(blocks_at_most) * shape.chunks > kMaxChunks) {
        return refuse(shape.chunks, " chunks a block are too many: a buffer may have ", kMaxChunks);
    }
    return Status::ok();
}

Status check_shape(Algorithm algorithm, const Shape& shape) {
    PCCL_TRY(check_range(shape));
    const int granularity = chunk_granularity(algorithm, shape.kind, shape.ranks);
    if (shape.chunks % granularity != 0) {
        return Status::invalid_argument(concat(to_string(algorithm), " ", to_string(shape.kind),
                                               " over ", shape.ranks, " ranks needs a multiple of ",
                                               granularity, " chunks, not ", shape.chunks));
    }
    if (const int slots = slots_needed(algorithm, shape.kind); shape.slots < slots) {
        return Status::invalid_argument(concat(to_string(algorithm), " ", to_string(shape.kind),
                                               " needs ", slots, " slots, not ", shape.slots));
    }
    return Status::ok();
}

/// The maker for `shape`, once it is known to be in range.
Result<const Entry*> choose(Algorithm algorithm, const Shape& shape) {
    const Entry* const entry = find_entry(algorithm, shape.kind);
    if (entry == nullptr) {
        return Status::unsupported(
            concat(to_string(algorithm), " does not make ", to_string(shape.kind)));
    }
    PCCL_TRY(check_shape(algorithm, shape));
    return entry;
}

Program make(const Entry& entry, const Member& me) {
    if (me.n() > 1) return entry.make(me);
    Program program;
    LaneBuilder(program).copy(me.block(Buffer::kInput, 0), me.block(Buffer::kOutput, 0));
    return program;
}

}  // namespace

std::string_view to_string(Algorithm algorithm) {
    switch (algorithm) {
        case kRing:
            return "ring";
        case kDoubleBinaryTree:
            return "double_binary_tree";
        case kRecursiveDoubling:
            return "recursive_doubling";
        case kRecursiveHalving:
            return "recursive_halving";
        case kBruck:
            return "bruck";
        case kOneShot:
            return "one_shot";
        case kTwoShot:
            return "two_shot";
        case kBinomial:
            return "binomial";
        case kPairwise:
            return "pairwise";
        case kPat:
            return "pat";
    }
    return "unknown";
}

std::span<const Algorithm> algorithms_for(CollectiveKind kind) {
    const auto of_kind = std::ranges::equal_range(kCatalogue, kind, {}, &Entry::kind);
    const auto first = static_cast<std::size_t>(of_kind.begin() - kCatalogue.begin());
    return std::span(kAlgorithms).subspan(first, of_kind.size());
}

int chunk_granularity(Algorithm algorithm, CollectiveKind kind, int ranks) {
    if (ranks <= 1) return 1;
    if (algorithm == kDoubleBinaryTree) return 2;
    if (kind != kAllReduce) return 1;
    if (algorithm == kRing || algorithm == kTwoShot || algorithm == kPat) return ranks;
    if (algorithm == kRecursiveHalving) {
        return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
    }
    return 1;
}

int slots_needed(Algorithm algorithm, CollectiveKind kind) {
    return algorithm == kRing && !is_rooted(kind) ? 2 : 1;
}

bool swaps_operands(Algorithm algorithm, CollectiveKind kind) {
    return kind == kAllReduce && (algorithm == kRecursiveDoubling || algorithm == kOneShot);
}

Result<Program> generate_program(Algorithm algorithm, const Shape& shape, Rank rank) {
    PCCL_ASSIGN_OR_RETURN(const Entry* entry, choose(algorithm, shape));
    if (rank < 0 || rank >= shape.ranks) {
        return Status::invalid_argument(
            concat("rank is ", rank, ", must be 0 to ", shape.ranks - 1));
    }
    return make(*entry, {shape, rank});
}

Result<Schedule> generate(Algorithm algorithm, const Shape& shape) {
    PCCL_ASSIGN_OR_RETURN(const Entry* entry, choose(algorithm, shape));
    Schedule schedule{.name = std::string(to_string(algorithm)), .shape = shape, .programs = {}};
    schedule.programs.reserve(static_cast<std::size_t>(shape.ranks));
    for (Rank rank = 0; rank < shape.ranks; ++rank) {
        schedule.programs.push_back(make(*entry, {shape, rank}));
    }
    return schedule;
}

}  // namespace pccl::schedule
