// SPDX-License-Identifier: Apache-2.0

// Instructions of MSCCL++'s plans, with their effects on chunks.
#pragma once

#include <cstdint>
#include <string_view>

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

}  // namespace pccl::capsule::mscclpp
