// SPDX-License-Identifier: Apache-2.0

// Small faults, put into a good schedule one at a time: a verifier that is worth its name finds
// each.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "csrc/schedule/schedule.h"

namespace pccl::schedule::testing {

enum class MutationKind {
    kDroppedStep,        // a step does nothing
    kSwappedPeer,        // a port names another rank, or two steps of a lane exchange their peers
    kDoubledReduce,      // a reduction is done twice, or a message sent and reduced twice
    kMissingDependency,  // a step no longer waits for another lane's
    kMissingLaneOrder,   // a lane is cut in two that run side by side
    kShiftedSlice,       // a slice begins a chunk or a block too early or too late
    kExchangedSlices,    // two slices of a list stand in each other's place
    kWrongChannelOrder,  // two steps that use one FIFO change places, or one uses another channel
};
inline constexpr int kMutationKinds = 8;

std::string_view to_string(MutationKind kind);

struct Mutant {
    MutationKind kind = MutationKind::kDroppedStep;
    std::string what;  // "rank 0 lane 0 step 3 (recv ...): dst + 1"
    Schedule schedule;
};

/// Every mutant of every kind. `schedule` must be right.
void for_each_mutant(const Schedule& schedule, const std::function<void(const Mutant&)>& visit);

}  // namespace pccl::schedule::testing
