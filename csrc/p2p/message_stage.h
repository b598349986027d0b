// How far a message has come.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pccl::p2p {

/// Memory of the host, and of GPUs by CUDA IPC, is written where it belongs: there kArrived and
/// kUnpacked are one moment. One that fails stays where it was.
enum class MessageStage : std::uint8_t {
    kPosted,
    kArrived,   // of a receive: all bytes are in this process, some on their way to a GPU's memory
    kUnpacked,  // all are where they belong; of a send: at the peer
    kConsumed,  // and its program knows, or its place in a window has gone to another
};

[[nodiscard]] constexpr std::string_view to_string(MessageStage stage) {
    constexpr std::array<std::string_view, 4> kNames{"posted", "arrived", "unpacked", "consumed"};
    return kNames[static_cast<std::size_t>(stage)];
}

}  // namespace pccl::p2p
