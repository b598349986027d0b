// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/mscclpp/instructions.h"

#include <algorithm>
#include <array>

namespace pccl::capsule::mscclpp {
namespace {

constexpr std::array<Instruction, 26> kInstructions{{
    {.name = "nop", .kind = InstructionKind::kNothing},
    {.name = "flush", .kind = InstructionKind::kNothing},
    {.name = "barrier", .kind = InstructionKind::kBarrier},
    {.name = "sem_acquire", .kind = InstructionKind::kAcquire},
    {.name = "sem_release", .kind = InstructionKind::kRelease},
    {.name = "signal", .kind = InstructionKind::kSignal},
    {.name = "rlxsignal", .kind = InstructionKind::kSignal},
    {.name = "wait", .kind = InstructionKind::kWait},
    {.name = "rlxwait", .kind = InstructionKind::kWait},
    {.name = "copy", .kind = InstructionKind::kMove},
    {.name = "cpkt", .kind = InstructionKind::kMove, .written = PacketChunks::kAll},
    {.name = "upkt", .kind = InstructionKind::kMove, .read = PacketChunks::kAll},
    {.name = "put", .kind = InstructionKind::kMove},
    {.name = "pws", .kind = InstructionKind::kMove, .signals = true},
    {.name = "pwsf", .kind = InstructionKind::kMove, .signals = true},
    {.name = "ppkt", .kind = InstructionKind::kMove, .written = PacketChunks::kAll},
    {.name = "rppkt",
     .kind = InstructionKind::kMove,
     .read = PacketChunks::kAll,
     .written = PacketChunks::kAll,
     .forwards = true},
    {.name = "get", .kind = InstructionKind::kMove},
    {.name = "re", .kind = InstructionKind::kReduce},
    {.name = "res", .kind = InstructionKind::kReduce},
    {.name = "rre", .kind = InstructionKind::kReduce},
    {.name = "rres", .kind = InstructionKind::kReduce},
    {.name = "repkt", .kind = InstructionKind::kReduce, .read = PacketChunks::kAllButFirst},
    {.name = "respkt",
     .kind = InstructionKind::kReduce,
     .read = PacketChunks::kAllButFirst,
     .written = PacketChunks::kAllButFirst},
    {.name = "recpkt",
     .kind = InstructionKind::kReduce,
     .read = PacketChunks::kAllButFirst,
     .written = PacketChunks::kAllButFirst},
    {.name = "recspkt",
     .kind = InstructionKind::kReduce,
     .read = PacketChunks::kAllButFirst,
     .written = PacketChunks::kAllButFirst},
}};

constexpr std::array<std::string_view, 4> kOfSwitches{"glre", "glres", "gstore", "gstorepkt"};

}  // namespace

const Instruction* instruction_called(std::string_view name) {
    const auto* const found = std::ranges::find(kInstructions, name, &Instruction::name);
    return found == kInstructions.end() ? nullptr : found;
}

bool needs_switch(std::string_view name) {
    return std::ranges::find(kOfSwitches, name) != kOfSwitches.end();
}

}  // namespace pccl::capsule::mscclpp
