// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/question_bell.h"

#include <gtest/gtest.h>

#include <thread>

namespace pccl::comm {
namespace {

TEST(QuestionBellTest, EndsARest) {
    QuestionBell bell;
    const std::uint64_t before = bell.rings();
    std::thread resting([&] { bell.rest(before, std::chrono::hours(1)); });
    bell.ring();
    resting.join();
    bell.rest(before, std::chrono::hours(1));  // it has rung since
}

}  // namespace
}  // namespace pccl::comm
