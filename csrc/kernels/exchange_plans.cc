// Plans of the collectives in which every pair of ranks passes one block. Measured on 4 x H200.
#include "csrc/base/ids.h"
#include "csrc/kernels/all_gather.h"
#include "csrc/kernels/all_to_all.h"
#include "csrc/kernels/broadcast.h"
#include "csrc/kernels/reduce_scatter.h"

namespace pccl::kernels {
namespace {

constexpr int kBlocks = 64;

std::size_t sent_to_all(std::size_t bytes, int ranks) {
    return bytes * static_cast<std::size_t>(ranks - 1);
}

/// From this much that leaves a GPU on, copy engines are as fast as kernels, or faster; not
/// between two.
bool is_for_engines(std::size_t bytes, int ranks) {
    return ranks > 2 && sent_to_all(bytes, ranks) >= 384 * kMiB;
}

Plan plan_exchange(std::size_t bytes, int ranks) {
    if (fits_words(bytes, ranks)) return words_plan(bytes);
    return direct_plan(sent_to_all(bytes, ranks), kBlocks);
}

}  // namespace

Plan plan_all_gather(std::size_t bytes, int ranks) {
    // From here on turns gain more than they cost.
    constexpr std::size_t kLeastInTurns = 24 * kMiB;
    if (is_for_engines(bytes, ranks)) return engines_plan();
    if (sent_to_all(bytes, ranks) >= kLeastInTurns) return turns_plan(kBlocks);
    return plan_exchange(bytes, ranks);
}

Plan plan_all_to_all(std::size_t bytes, int ranks) {
    const int blocks = sent_to_all(bytes, ranks) < 8 * kMiB ? kBlocks : abi::kMostBlocks;
    if (fits_words(bytes, ranks)) return words_plan(bytes);
    if (is_for_engines(bytes, ranks)) return engines_plan();
    if (sent_to_all(bytes, ranks) >= 32 * kMiB) return turns_plan(abi::kMostBlocks);
    return direct_plan(sent_to_all(bytes, ranks), blocks);
}

Plan plan_reduce_scatter(std::size_t bytes, int ranks) {
    // Among several, few blocks are enough for NVLink here; with more to move, many are faster.
    const std::size_t got = sent_to_all(bytes, ranks);
    if (ranks > 2 && got >= 6 * kMiB && got < 32 * kMiB) return direct_plan(got, 16);
    return plan_exchange(bytes, ranks);
}

Plan plan_broadcast(std::size_t bytes, int ranks) {
    if (fits_words(bytes, ranks)) return words_plan(bytes);
    if (bytes < 8 * kMiB) return direct_plan(bytes, kBlocks);
    // More blocks than NVLink needs are in each other's way here.
    if (ranks > 2) return direct_plan(bytes, 8);
    return direct_plan(bytes, bytes > 64 * kMiB ? 32 : 16);
}

}  // namespace pccl::kernels
