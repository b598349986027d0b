// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/tcp_protocol.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/fakes/deadlines.h"

namespace pccl::bootstrap {
namespace {

TEST(TcpProtocolTest, RandomFramesGiveAStatus) {
    const std::string request = frame_of(StoreRequest{StoreVerb::kAdd, 7, "key", "value", -3});
    const std::string answer = frame_of(StoreAnswer{7, StatusCode::kTimeout, "text"});
    std::mt19937 random(5);
    int readable = 0;
    for (int round = 0; round < 20'000; ++round) {
        std::string buffer = random() % 2 == 0 ? request : answer;
        for (std::size_t hits = random() % 4; hits > 0; --hits)
            buffer[random() % buffer.size()] = static_cast<char>(random());
        if (random() % 4 == 0) buffer.resize(random() % buffer.size());
        const auto payload = take_frame(buffer);
        if (!payload.is_ok() || !payload.value()) continue;
        const auto as_request = parse_request(*payload.value());
        const auto as_answer = parse_answer(*payload.value());
        if (as_request.is_ok()) {
            ASSERT_EQ(frame_of(as_request.value()).substr(4), *payload.value());
        }
        if (as_answer.is_ok()) {
            ASSERT_EQ(frame_of(as_answer.value()).substr(4), *payload.value());
        }
        readable += as_request.is_ok() || as_answer.is_ok() ? 1 : 0;
    }
    EXPECT_GT(readable, 1000);
}

}  // namespace
}  // namespace pccl::bootstrap
