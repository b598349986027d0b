// SPDX-License-Identifier: Apache-2.0

// Stages of a message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pccl::p2p {

/// Stage of a message. Host memory, and GPU memory by CUDA IPC, is written directly into place:
/// kArrived and kUnpacked coincide there. A failed message keeps the stage that it had.
enum class MessageStage : std::uint8_t {
    kPosted,
    kArrived,   // of a receive: all bytes are in this process, some of them still on their way to
                // GPU memory
    kUnpacked,  // all bytes are in place; of a send: at the peer
    kConsumed,  // its program has seen the completion, or its place in a window was reused
};

[[nodiscard]] constexpr std::string_view to_string(MessageStage stage) {
    constexpr std::array<std::string_view, 4> kNames{"posted", "arrived", "unpacked", "consumed"};
    return kNames[static_cast<std::size_t>(stage)];
}

}  // namespace pccl::p2p
