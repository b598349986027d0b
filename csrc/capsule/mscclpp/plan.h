// The execution plans of MSCCL++ (github.com/microsoft/mscclpp), as its JSON says them: GPUs, of
// thread blocks, of operations on memory of their own and of others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/capsule/mscclpp/instructions.h"
#include "csrc/schedule/schedule.h"
#include "csrc/schedule/source.h"

namespace pccl::capsule::mscclpp {

/// Chunks of a buffer of some GPU.
struct Chunks {
    Rank rank = 0;
    schedule::Buffer buffer{};
    int index = 0;
    int size = 0;
    bool are_packets = false;  // each with a flag, for which its reader waits
    auto operator<=>(const Chunks&) const = default;
};

enum class ChannelType : std::uint8_t { kMemory, kPort, kSwitch };

/// The `nth` connection of its type from a GPU to `peer`; it is the same as that of its peer.
struct Channel {
    ChannelType type{};
    Rank peer = 0;
    int nth = 0;
    auto operator<=>(const Channel&) const = default;
};

/// Which part of an operation a thread block does, where several share it.
struct Share {
    int part = 0;
    int parts = 1;
};

struct Operation {
    std::string_view name;
    std::string number;  // "5" in its thread block, "5.2" in a loop
    int line = 0;        // of the file
    Kind kind{};
    bool signals = false;  // after what it moves
    Share share{};
    std::vector<Chunks> src{};
    std::vector<Chunks> dst{};
    std::vector<Channel> channels{};
    std::vector<int> ids{};  // of semaphores, or of a barrier
    int blocks_to_meet = 0;  // at a barrier
};

using ThreadBlock = std::vector<Operation>;

struct Gpu {
    int line = 0;  // of the file
    int scratch_chunks = 0;
    std::vector<int> semaphores{};  // what they begin with
    std::vector<ThreadBlock> blocks{};
};

/// An operation of a thread block.
struct At {
    Rank gpu = 0;
    std::size_t block = 0;
    std::size_t op = 0;
    auto operator<=>(const At&) const = default;
};

struct Plan {
    std::string name;
    std::string file;  // stands for the plan in messages
    std::optional<schedule::MessageProtocol> protocol;
    schedule::CollectiveKind kind{};
    bool in_place = false;
    int chunks = 1;  // of a block
    schedule::SizeRange sizes{};
    std::vector<Gpu> gpus;  // by rank

    [[nodiscard]] const Gpu& gpu(Rank rank) const { return gpus[static_cast<std::size_t>(rank)]; }
    [[nodiscard]] const ThreadBlock& block(const At& at) const {
        return gpu(at.gpu).blocks[at.block];
    }
    [[nodiscard]] const Operation& operation(const At& at) const { return block(at)[at.op]; }
    /// Names a place in messages: "plan.json:12: gpu 0, threadblock 0, op 5 (put)"; that of the GPU
    /// where there is no such operation.
    [[nodiscard]] std::string place_of(const At& at) const;
    /// Returns how many chunks a buffer of a GPU has.
    [[nodiscard]] int chunks_in(Rank rank, schedule::Buffer buffer) const;
    /// Names the same chunks by the larger of input and output, where these are one memory.
    [[nodiscard]] Chunks home_of(const Chunks& named) const;
};

/// Lists all operations, GPU by GPU and thread block by thread block.
[[nodiscard]] std::vector<At> all_operations(const Plan& plan);

/// Returns "gpu 0, threadblock 0, op 5 (put)".
[[nodiscard]] std::string label_of(Rank gpu, std::size_t block, std::string_view number,
                                   std::string_view name);

}  // namespace pccl::capsule::mscclpp
