// SPDX-License-Identifier: Apache-2.0

// Execution plans of MSCCL++ (github.com/microsoft/mscclpp), as in its JSON: GPUs contain thread
// blocks, which contain operations on local and remote memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/schedule/schedule.h"
#include "csrc/schedule/source.h"

namespace pccl::capsule::mscclpp {

enum class InstructionKind : std::uint8_t {
    kNothing,  // nop, flush: lanes are ordered anyway
    kBarrier,  // among thread blocks of one GPU
    kAcquire,
    kRelease,
    kSignal,
    kWait,
    kMove,    // each chunk of src to the corresponding one of dst, on any GPU
    kReduce,  // all of src into the first of dst, and from there to the others
};

/// Chunks of an operation that are packets: data and a flag, for which a reader waits.
enum class PacketChunks : std::uint8_t { kNone, kAll, kAllButFirst };

struct Instruction {
    std::string_view name;
    InstructionKind kind{};
    PacketChunks read = PacketChunks::kNone;     // of src
    PacketChunks written = PacketChunks::kNone;  // of dst
    bool signals = false;                        // after its transfer
    bool forwards = false;                       // one chunk of src to each of dst
};

/// Returns an instruction; null if capsules do not support it.
[[nodiscard]] const Instruction* instruction_called(std::string_view name);

/// Returns whether an instruction stores to, or reduces over, the memory of several GPUs in a
/// switch.
[[nodiscard]] bool needs_switch(std::string_view name);

/// Chunks of a buffer of a GPU.
struct Chunks {
    Rank rank = 0;
    schedule::Buffer buffer{};
    int index = 0;
    int size = 0;
    bool are_packets = false;  // each with a flag, for which its reader waits
    auto operator<=>(const Chunks&) const = default;
};

enum class ChannelType : std::uint8_t { kMemory, kPort, kSwitch };

/// Connection number `nth` of its type from a GPU to `peer`; the peer uses the same number.
struct PlanChannel {
    ChannelType type{};
    Rank peer = 0;
    int nth = 0;
    auto operator<=>(const PlanChannel&) const = default;
};

/// Share of an operation that a thread block performs, if several share it.
struct Share {
    int part = 0;
    int parts = 1;
};

struct PlanOperation {
    std::string_view name;
    std::string number;  // "5" in its thread block, "5.2" in a loop
    int line = 0;        // of the file
    InstructionKind kind{};
    bool signals = false;  // after its transfer
    Share share{};
    std::vector<Chunks> src{};
    std::vector<Chunks> dst{};
    std::vector<PlanChannel> channels{};
    std::vector<int> ids{};  // of semaphores, or of a barrier
    int blocks_to_meet = 0;  // at a barrier
};

using ThreadBlock = std::vector<PlanOperation>;

struct PlanGpu {
    int line = 0;  // of the file
    int scratch_chunks = 0;
    std::vector<int> semaphores{};  // initial values
    std::vector<ThreadBlock> blocks{};
};

/// Place of an operation of a thread block.
struct At {
    Rank gpu = 0;
    std::size_t block = 0;
    std::size_t op = 0;
    auto operator<=>(const At&) const = default;
};

struct MscclppPlan {
    std::string name;
    std::string file;  // name of the plan in error messages
    std::optional<schedule::MessageProtocol> protocol;
    schedule::CollectiveKind kind{};
    bool in_place = false;
    int chunks = 1;  // of a block
    schedule::SizeRange sizes{};
    std::vector<PlanGpu> gpus;  // by rank

    [[nodiscard]] const PlanGpu& gpu(Rank rank) const {
        return gpus[static_cast<std::size_t>(rank)];
    }
    [[nodiscard]] const ThreadBlock& block(const At& at) const {
        return gpu(at.gpu).blocks[at.block];
    }
    [[nodiscard]] const PlanOperation& operation(const At& at) const { return block(at)[at.op]; }
    /// Returns a place for error messages: "plan.json:12: gpu 0, threadblock 0, op 5 (put)"; the
    /// place of the GPU if there is no such operation.
    [[nodiscard]] std::string place_of(const At& at) const;
    /// Returns the number of chunks in a buffer of a GPU.
    [[nodiscard]] int chunks_in(Rank rank, schedule::Buffer buffer) const;
    /// Returns the same chunks as part of the larger of input and output, if the two share memory.
    [[nodiscard]] Chunks home_of(const Chunks& named) const;
};

/// Returns all operations, GPU by GPU and thread block by thread block.
[[nodiscard]] std::vector<At> all_operations(const MscclppPlan& plan);

/// Returns "gpu 0, threadblock 0, op 5 (put)".
[[nodiscard]] std::string label_of(Rank gpu, std::size_t block, std::string_view number,
                                   std::string_view name);

}  // namespace pccl::capsule::mscclpp
