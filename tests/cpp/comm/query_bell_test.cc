// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>

#include "csrc/comm/diagnosis/self_report.h"

namespace pccl::comm {
namespace {

TEST(QuestionBellTest, EndsARest) {
    QueryBell bell;
    const std::uint64_t before = bell.rings();
    std::thread resting([&] { bell.rest(before, std::chrono::hours(1)); });
    bell.ring();
    resting.join();
    bell.rest(before, std::chrono::hours(1));  // it has rung since
}

}  // namespace
}  // namespace pccl::comm
