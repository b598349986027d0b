// Which operands an action takes: the table of schedule.h as data.
#pragma once

#include <optional>

#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

enum class Use : std::uint8_t { kNone, kOptional, kRequired };

struct Operands {
    bool receives = false;
    Use src = Use::kNone;
    bool dst = false;
    bool sends = false;
    bool reduces = false;
};

/// Empty for a number that is no action.
[[nodiscard]] constexpr std::optional<Operands> operands_of(Action action) {
    switch (action) {
        case Action::kNop:
        case Action::kSwitchPhase:
            return Operands{};
        case Action::kCopy:
            return Operands{.src = Use::kRequired, .dst = true};
        case Action::kReduce:
            return Operands{.src = Use::kRequired, .dst = true, .reduces = true};
        case Action::kSend:
            return Operands{.src = Use::kRequired, .sends = true};
        case Action::kRecv:
            return Operands{.receives = true, .dst = true};
        case Action::kRecvCopySend:
            return Operands{.receives = true, .dst = true, .sends = true};
        case Action::kRecvReduce:
            return Operands{.receives = true, .src = Use::kOptional, .dst = true, .reduces = true};
        case Action::kRecvReduceSend:
            return Operands{
                .receives = true, .src = Use::kRequired, .sends = true, .reduces = true};
        case Action::kRecvReduceCopySend:
            return Operands{.receives = true,
                            .src = Use::kOptional,
                            .dst = true,
                            .sends = true,
                            .reduces = true};
    }
    return std::nullopt;
}

/// What the step reads, writes and reduces into; a slice with count 0 where it does not.
struct Accesses {
    Slice read;       // src
    Slice overwrite;  // dst, not read before
    Slice update;     // dst, read and then written
};

[[nodiscard]] inline Accesses accesses_of(const Step& step) {
    const bool updates =
        step.action == Action::kReduce ||
        ((step.action == Action::kRecvReduce || step.action == Action::kRecvReduceCopySend) &&
         step.src.count == 0);
    if (updates) return {step.src, {}, step.dst};
    return {step.src, step.dst, {}};
}

/// Chunks that the step handles; the slices of a verified step agree on it.
[[nodiscard]] inline int count_of(const Step& step) {
    return step.src.count > 0 ? step.src.count : step.dst.count;
}

/// Where in its buffer the step's first chunk lies, for its length.
[[nodiscard]] inline int offset_of(const Step& step) {
    return step.src.count > 0 ? step.src.offset : step.dst.offset;
}

}  // namespace pccl::schedule
