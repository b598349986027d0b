// SPDX-License-Identifier: Apache-2.0

// Operands of each action: the table of schedule.h as data.
#pragma once

#include <optional>

#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

enum class OperandUse : std::uint8_t { kNone, kOptional, kRequired };

struct Operands {
    bool receives = false;
    OperandUse src = OperandUse::kNone;
    bool dst = false;
    bool sends = false;
    bool reduces = false;
};

/// Returns nothing for a number that is no action.
[[nodiscard]] constexpr std::optional<Operands> operands_of(Action action) {
    switch (action) {
        case Action::kNop:
        case Action::kSwitchPhase:
            return Operands{};
        case Action::kCopy:
            return Operands{.src = OperandUse::kRequired, .dst = true};
        case Action::kReduce:
            return Operands{.src = OperandUse::kRequired, .dst = true, .reduces = true};
        case Action::kSend:
            return Operands{.src = OperandUse::kRequired, .sends = true};
        case Action::kRecv:
            return Operands{.receives = true, .dst = true};
        case Action::kRecvCopySend:
            return Operands{.receives = true, .dst = true, .sends = true};
        case Action::kRecvReduce:
            return Operands{
                .receives = true, .src = OperandUse::kOptional, .dst = true, .reduces = true};
        case Action::kRecvReduceSend:
            return Operands{
                .receives = true, .src = OperandUse::kRequired, .sends = true, .reduces = true};
        case Action::kRecvReduceCopySend:
            return Operands{.receives = true,
                            .src = OperandUse::kOptional,
                            .dst = true,
                            .sends = true,
                            .reduces = true};
    }
    return std::nullopt;
}

/// Slices that a step reads, overwrites and updates; empty if it does not. References into the
/// step.
struct Accesses {
    const Slices& read;       // src
    const Slices& overwrite;  // dst, written without being read
    const Slices& update;     // dst, read and then written
};

[[nodiscard]] inline Accesses accesses_of(const Step& step) {
    const bool updates =
        step.action == Action::kReduce ||
        ((step.action == Action::kRecvReduce || step.action == Action::kRecvReduceCopySend) &&
         step.src.is_empty());
    static const Slices nothing;
    if (updates) return {step.src, nothing, step.dst};
    return {step.src, step.dst, nothing};
}

inline constexpr int kAllAlike = -1;

/// Returns the index of the first pair of chunks whose offsets in their blocks differ, so that
/// their lengths may differ; blocks have `chunks` chunks. The lists have equal counts.
[[nodiscard]] inline int first_unlike(const Slices& some, const Slices& others, int chunks) {
    ChunkWalk one(some);
    ChunkWalk other(others);
    for (int i = 0; one.has_next() && other.has_next(); ++i)
        if ((one.next().offset - other.next().offset) % chunks != 0) return i;
    return kAllAlike;
}

}  // namespace pccl::schedule
