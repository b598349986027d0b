// How a collective is launched: the same on all ranks, a pure function of what all ranks know.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/abi/device_program.h"
#include "csrc/abi/device_team.h"
#include "csrc/kernels/thresholds.h"

namespace pccl::kernels {

/// kWords: every thread sends 8 bytes to each peer, with their arrival flag in them; no fence, half
/// the bandwidth. kDirect: loads from and stores to the peers' tensors between two meetings.
/// kTurns: the same, but what is pushed goes to one peer after the other. kEngines: copy engines
/// pull between two meetings; only where blocks are moved as they are and all ranks know how long
/// they are, elsewhere it means kDirect. kLines: eight threads send 120 bytes with their arrival
/// flag; of schedules alone, between GPUs that keep such lines whole.
enum class Protocol : std::uint8_t { kWords, kDirect, kTurns, kEngines, kLines };

struct Plan {
    Protocol protocol = Protocol::kDirect;
    int blocks = 1;  // 0: the kernel is loaded, and not launched
    int threads = 512;
    const char* why = "";  // for people: what made the choice

    friend bool operator==(const Plan& one, const Plan& other) {
        return one.protocol == other.protocol && one.blocks == other.blocks &&
               one.threads == other.threads;
    }
};

/// How a schedule's messages go by `protocol`.
[[nodiscard]] constexpr abi::MessageForm form_of(Protocol protocol) {
    if (protocol == Protocol::kWords) return abi::MessageForm::kWords;
    return protocol == Protocol::kLines ? abi::MessageForm::kLines : abi::MessageForm::kPlain;
}

inline constexpr int kMostThreads = 512;  // of a block

/// A message between two ranks that kWords can carry in one launch of so many blocks.
[[nodiscard]] constexpr std::size_t most_word_bytes(int blocks) {
    return static_cast<std::size_t>(blocks) * abi::kLinesPerBlock * abi::kLineBytes;
}
inline constexpr std::size_t kMostWordBytes = most_word_bytes(abi::kMostLinedBlocks);

/// Whether words carry `bytes` from each GPU to all others, and fast.
[[nodiscard]] inline bool fits_words(std::size_t bytes, const Gpus& gpus) {
    return bytes <= kMostWordBytes && gpus.sent(bytes) <= gpus.thresholds().most_sent_in_words;
}

/// Blocks and threads for `bytes` by words: few words a block while there are blocks.
[[nodiscard]] constexpr Plan words_plan(std::size_t bytes,
                                        int most_blocks = abi::kMostLinedBlocks) {
    constexpr std::size_t kFewWords = 128;
    const std::size_t words = bytes == 0 ? 1 : (bytes + abi::kLineBytes - 1) / abi::kLineBytes;
    std::size_t threads = kFewWords;
    while (threads * static_cast<std::size_t>(most_blocks) < words) threads *= 2;
    if (words < threads) threads = (words + 31) / 32 * 32;
    return {.protocol = Protocol::kWords,
            .blocks = static_cast<int>((words + threads - 1) / threads),
            .threads = static_cast<int>(threads),
            .why = "small: each word brings its arrival flag, so there is one hop, and no meeting"};
}

/// Blocks for `bytes` that one rank moves over NVLink directly.
[[nodiscard]] constexpr Plan direct_plan(std::size_t bytes, int most_blocks) {
    constexpr std::size_t kBytesPerBlock = 8 * 1024;  // one packet a thread
    const std::size_t wanted = (bytes + kBytesPerBlock - 1) / kBytesPerBlock;
    const std::size_t most = static_cast<std::size_t>(most_blocks);
    const std::size_t blocks = wanted < 1 ? 1 : (wanted > most ? most : wanted);
    return {.protocol = Protocol::kDirect,
            .blocks = static_cast<int>(blocks),
            .why = "too much for words: blocks read and write the peers' tensors"};
}

/// Blocks for what one rank moves in turns.
[[nodiscard]] constexpr Plan turns_plan(int blocks) {
    return {.protocol = Protocol::kTurns,
            .blocks = blocks,
            .why = "large: pushing to one peer after the other gains more than it costs"};
}

/// For what copy engines pull; the blocks do their work where they could not.
[[nodiscard]] constexpr Plan engines_plan() {
    return {.protocol = Protocol::kEngines,
            .blocks = 64,
            .why = "large blocks that are moved as they are: copy engines leave the GPU to others"};
}

/// For blocks whose lengths only some ranks know.
[[nodiscard]] constexpr Plan plan_of_unknown_lengths() {
    return {.protocol = Protocol::kDirect,
            .blocks = 64,
            .why = "not all ranks know how long the blocks are"};
}

}  // namespace pccl::kernels
