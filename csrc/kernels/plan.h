// SPDX-License-Identifier: Apache-2.0

// Launch plan of a collective. It is the same on all ranks: a pure function of arguments that all
// ranks have.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/abi/device_program.h"
#include "csrc/abi/device_team.h"
#include "csrc/kernels/thresholds.h"

namespace pccl::kernels {

/// Protocol of a launch.
///
/// - kLL: every thread sends 8 bytes with an arrival flag to each peer; no fence, half the
///   bandwidth.
/// - kDirect: threads load from and store to the peers' tensors between two barriers.
/// - kStaggered: like kDirect, but a rank pushes to one peer after the other.
/// - kCopyEngine: copy engines pull between two barriers. It requires blocks that are moved
///   unchanged and lengths that all ranks have; elsewhere it means kDirect.
/// - kLL128: eight threads send 120 bytes with an arrival flag. It is for schedules only, between
///   GPUs that keep such lines whole.
enum class Protocol : std::uint8_t { kLL, kDirect, kStaggered, kCopyEngine, kLL128 };

struct LaunchPlan {
    Protocol protocol = Protocol::kDirect;
    int blocks = 1;  // 0: the kernel is loaded, and not launched
    int threads = 512;
    const char* why = "";  // reason for the choice, for users

    friend bool operator==(const LaunchPlan& one, const LaunchPlan& other) {
        return one.protocol == other.protocol && one.blocks == other.blocks &&
               one.threads == other.threads;
    }
};

/// Returns the form of a schedule's messages under `protocol`.
[[nodiscard]] constexpr abi::MessageForm form_of(Protocol protocol) {
    if (protocol == Protocol::kLL) return abi::MessageForm::kLL;
    return protocol == Protocol::kLL128 ? abi::MessageForm::kLL128 : abi::MessageForm::kPlain;
}

inline constexpr int kMostThreads = 512;  // of a block

/// Returns the most bytes from one rank to another that kLL carries in one launch of `blocks`.
[[nodiscard]] constexpr std::size_t most_ll_bytes(int blocks) {
    return static_cast<std::size_t>(blocks) * abi::kLLLinesPerBlock * abi::kLLDataBytes;
}
inline constexpr std::size_t kMostLLBytes = most_ll_bytes(abi::kMostLLBlocks);

/// Returns whether LL can carry `bytes` from each GPU to all others, and is fast for it.
[[nodiscard]] inline bool fits_ll(std::size_t bytes, const Gpus& gpus) {
    return bytes <= kMostLLBytes && gpus.sent(bytes) <= gpus.thresholds().most_sent_by_ll;
}

/// Returns blocks and threads for `bytes` by LL: few lines for each block while there are blocks.
[[nodiscard]] constexpr LaunchPlan ll_plan(std::size_t bytes,
                                           int most_blocks = abi::kMostLLBlocks) {
    constexpr std::size_t kFewWords = 128;
    const std::size_t words = bytes == 0 ? 1 : (bytes + abi::kLLDataBytes - 1) / abi::kLLDataBytes;
    std::size_t threads = kFewWords;
    while (threads * static_cast<std::size_t>(most_blocks) < words) threads *= 2;
    if (words < threads) threads = (words + 31) / 32 * 32;
    return {
        .protocol = Protocol::kLL,
        .blocks = static_cast<int>((words + threads - 1) / threads),
        .threads = static_cast<int>(threads),
        .why = "small: each word carries its arrival flag, so there is one hop, and no barrier"};
}

/// Returns blocks for `bytes` that one rank moves over NVLink directly.
[[nodiscard]] constexpr LaunchPlan direct_plan(std::size_t bytes, int most_blocks) {
    constexpr std::size_t kBytesPerBlock = 8 * 1024;  // one packet for each thread
    const std::size_t wanted = (bytes + kBytesPerBlock - 1) / kBytesPerBlock;
    const std::size_t most = static_cast<std::size_t>(most_blocks);
    const std::size_t blocks = wanted < 1 ? 1 : (wanted > most ? most : wanted);
    return {.protocol = Protocol::kDirect,
            .blocks = static_cast<int>(blocks),
            .why = "too much for LL: blocks read and write the peers' tensors"};
}

/// Returns a plan for staggered pushes of one rank.
[[nodiscard]] constexpr LaunchPlan staggered_plan(int blocks) {
    return {.protocol = Protocol::kStaggered,
            .blocks = blocks,
            .why = "large: pushing to one peer after the other gains more than it costs"};
}

/// Returns a plan for pulls by copy engines; the blocks copy where those could not.
[[nodiscard]] constexpr LaunchPlan copy_engine_plan() {
    return {.protocol = Protocol::kCopyEngine,
            .blocks = 64,
            .why = "large blocks that are moved as they are: copy engines leave the GPU to others"};
}

/// Returns a plan for blocks whose lengths only some ranks have.
[[nodiscard]] constexpr LaunchPlan plan_of_unknown_lengths() {
    return {.protocol = Protocol::kDirect,
            .blocks = 64,
            .why = "not all ranks have the lengths of the blocks"};
}

}  // namespace pccl::kernels
