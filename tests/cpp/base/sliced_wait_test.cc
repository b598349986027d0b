// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/threads/sliced_wait.h"

#include <gtest/gtest.h>

namespace pccl {
namespace {

constexpr Duration kSlice = std::chrono::milliseconds(1);

std::optional<Status> never(const Status&) { return std::nullopt; }
Status nothing() { return Status::ok(); }

TEST(WaitInSlicesTest, WhatEndsAsASliceDoesIsNotLate) {
    bool is_done = false;
    const auto end_late = [&](Deadline) {
        is_done = true;
        return Status::timeout("not yet");
    };
    const auto ending = [&](const Status&) {
        return is_done ? std::optional(Status::ok()) : std::nullopt;
    };
    const Status ended = wait_in_slices(Deadline::never(), kSlice, end_late, ending, nothing);
    EXPECT_TRUE(ended.is_ok()) << ended.to_string();
}

/// Waits until its slice is over.
Status wait_out(Deadline until) {
    while (!until.passed()) continue;
    return Status::timeout("slice over");
}

TEST(WaitInSlicesTest, ReturnsTheReasonOnceTheDeadlineHasPassed) {
    const Deadline deadline = Deadline::after(5 * kSlice);
    const Status late = wait_in_slices(deadline, kSlice, wait_out, never, nothing);
    EXPECT_EQ(late.code(), StatusCode::kTimeout);
    EXPECT_TRUE(deadline.passed());
}

TEST(WaitInSlicesTest, ASliceIsShorterThanTheWait) {
    int slices = 0;
    const auto third = [&](const Status&) {
        return ++slices == 3 ? std::optional(Status::ok()) : std::nullopt;
    };
    const Deadline deadline = Deadline::after(std::chrono::hours(1));
    const Status ended = wait_in_slices(deadline, kSlice, wait_out, third, nothing);
    EXPECT_TRUE(ended.is_ok()) << ended.to_string();
}

TEST(WaitInSlicesTest, EndsWhenTheCheckFails) {
    const auto wait = [](Deadline) { return Status::timeout("not yet"); };
    const auto interrupted = [] { return Status::aborted("Ctrl-C"); };
    const Status ended = wait_in_slices(Deadline::never(), kSlice, wait, never, interrupted);
    EXPECT_EQ(ended.code(), StatusCode::kAborted);
}

}  // namespace
}  // namespace pccl
