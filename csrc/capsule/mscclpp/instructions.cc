// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/mscclpp/instructions.h"

#include <algorithm>
#include <array>

namespace pccl::capsule::mscclpp {
namespace {

constexpr std::array<Instruction, 26> kInstructions{{
    {.name = "nop", .kind = Kind::kNothing},
    {.name = "flush", .kind = Kind::kNothing},
    {.name = "barrier", .kind = Kind::kBarrier},
    {.name = "sem_acquire", .kind = Kind::kAcquire},
    {.name = "sem_release", .kind = Kind::kRelease},
    {.name = "signal", .kind = Kind::kSignal},
    {.name = "rlxsignal", .kind = Kind::kSignal},
    {.name = "wait", .kind = Kind::kWait},
    {.name = "rlxwait", .kind = Kind::kWait},
    {.name = "copy", .kind = Kind::kMove},
    {.name = "cpkt", .kind = Kind::kMove, .written = Packets::kAll},
    {.name = "upkt", .kind = Kind::kMove, .read = Packets::kAll},
    {.name = "put", .kind = Kind::kMove},
    {.name = "pws", .kind = Kind::kMove, .signals = true},
    {.name = "pwsf", .kind = Kind::kMove, .signals = true},
    {.name = "ppkt", .kind = Kind::kMove, .written = Packets::kAll},
    {.name = "rppkt",
     .kind = Kind::kMove,
     .read = Packets::kAll,
     .written = Packets::kAll,
     .forwards = true},
    {.name = "get", .kind = Kind::kMove},
    {.name = "re", .kind = Kind::kReduce},
    {.name = "res", .kind = Kind::kReduce},
    {.name = "rre", .kind = Kind::kReduce},
    {.name = "rres", .kind = Kind::kReduce},
    {.name = "repkt", .kind = Kind::kReduce, .read = Packets::kAllButFirst},
    {.name = "respkt",
     .kind = Kind::kReduce,
     .read = Packets::kAllButFirst,
     .written = Packets::kAllButFirst},
    {.name = "recpkt",
     .kind = Kind::kReduce,
     .read = Packets::kAllButFirst,
     .written = Packets::kAllButFirst},
    {.name = "recspkt",
     .kind = Kind::kReduce,
     .read = Packets::kAllButFirst,
     .written = Packets::kAllButFirst},
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
