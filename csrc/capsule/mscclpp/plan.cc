// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/mscclpp/plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "csrc/base/text/text.h"

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

using schedule::Buffer;

std::string label_of(Rank gpu, std::size_t block, std::string_view number, std::string_view name) {
    return concat("gpu ", gpu, ", threadblock ", block, ", op ", number, " (", name, ")");
}

std::string MscclppPlan::place_of(const At& at) const {
    const PlanGpu& of = gpu(at.gpu);
    if (at.block >= of.blocks.size() || at.op >= of.blocks[at.block].size())
        return concat(file, ":", of.line, ": gpu ", at.gpu);
    const PlanOperation& found = operation(at);
    return concat(file, ":", found.line, ": ",
                  label_of(at.gpu, at.block, found.number, found.name));
}

int MscclppPlan::chunks_in(Rank rank, Buffer buffer) const {
    if (buffer == Buffer::kScratch) return gpu(rank).scratch_chunks;
    return schedule::blocks(kind, buffer, static_cast<int>(gpus.size())) * chunks;
}

Chunks MscclppPlan::home_of(const Chunks& named) const {
    if (!in_place || named.buffer == Buffer::kScratch) return named;
    const int inputs = chunks_in(named.rank, Buffer::kInput);
    const int outputs = chunks_in(named.rank, Buffer::kOutput);
    const Buffer larger = inputs < outputs ? Buffer::kOutput : Buffer::kInput;
    Chunks home = named;
    home.buffer = larger;
    if (inputs != outputs && named.buffer != larger) home.index += named.rank * chunks;
    return home;
}

std::vector<At> all_operations(const MscclppPlan& plan) {
    std::vector<At> all;
    for (Rank rank = 0; std::cmp_less(rank, plan.gpus.size()); ++rank)
        for (std::size_t block = 0; block < plan.gpu(rank).blocks.size(); ++block)
            for (std::size_t op = 0; op < plan.gpu(rank).blocks[block].size(); ++op)
                all.push_back({rank, block, op});
    return all;
}

}  // namespace pccl::capsule::mscclpp
