// SPDX-License-Identifier: Apache-2.0

// Schedules made by hand, and the fault that the verifier finds in each.
#pragma once

#include <gtest/gtest.h>

#include "csrc/schedule/verifier/verifier.h"

namespace pccl::schedule {

inline constexpr Buffer kIn = Buffer::kInput;

inline constexpr Buffer kOut = Buffer::kOutput;

inline constexpr Buffer kTmp = Buffer::kScratch;

inline std::string fault_of(const Schedule& schedule,
                            Placement placement = Placement::kOutOfPlace) {
    const auto verdict = verify(schedule, placement);
    EXPECT_TRUE(verdict.is_ok() || verdict.status().code() == StatusCode::kInvalidArgument);
    return verdict.status().message();
}

/// Two ranks swap their vectors and add them: right, with one lane each.
inline Schedule good_all_reduce() {
    Schedule schedule{.name = "by hand",
                      .shape = {.kind = CollectiveKind::kAllReduce, .ranks = 2},
                      .programs = {}};
    for (const Rank peer : {1, 0}) {
        schedule.programs.push_back(
            {.lanes = {{{.action = Action::kSend, .src = {kIn, 0, 1}, .to = {peer}},
                        {.action = Action::kRecvReduce,
                         .src = {kIn, 0, 1},
                         .dst = {kOut, 0, 1},
                         .from = {peer}}}}});
    }
    return schedule;
}

inline Step& step(Schedule& schedule, std::size_t rank, std::size_t number, std::size_t lane = 0) {
    return schedule.programs[rank].lanes[lane][number];
}

/// Every lane goes to phase "ring" before step `number`.
inline Schedule switched_before(std::size_t number) {
    Schedule schedule = good_all_reduce();
    schedule.phases = {"ring"};
    for (Program& program : schedule.programs)
        for (Lane& lane : program.lanes)
            lane.insert(lane.begin() + static_cast<std::ptrdiff_t>(number),
                        {.action = Action::kSwitchPhase});
    return schedule;
}

/// good_all_reduce() with two chunks a message.
inline Schedule good_all_reduce_of_two_chunks() {
    Schedule schedule = good_all_reduce();
    schedule.shape.chunks = 2;
    for (std::size_t rank = 0; rank < 2; ++rank) {
        step(schedule, rank, 0).src = {kIn, 0, 2};
        step(schedule, rank, 1).src = {kIn, 0, 2};
        step(schedule, rank, 1).dst = {kOut, 0, 2};
    }
    EXPECT_EQ(fault_of(schedule), "");
    return schedule;
}

/// Two ranks that swap the halves of a block of two chunks, in one message each way.
inline Schedule swapped_halves() {
    Schedule schedule{.name = "swapped", .shape = {.ranks = 2, .chunks = 2}, .programs = {}};
    for (Rank rank = 0; rank < 2; ++rank) {
        const Rank peer = 1 - rank;
        schedule.programs.push_back(
            {.lanes = {{{.action = Action::kSend, .src = {{kIn, 1, 1}, {kIn, 0, 1}}, .to = {peer}},
                        {.action = Action::kRecvReduce,
                         .src = {{kIn, 1, 1}, {kIn, 0, 1}},
                         .dst = {{kOut, 1, 1}, {kOut, 0, 1}},
                         .from = {peer}}}}});
    }
    return schedule;
}

}  // namespace pccl::schedule
