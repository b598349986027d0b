// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/echo.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "csrc/sys/socket/socket.h"
#include "tests/fakes/deadlines.h"

namespace pccl::sys {
namespace {

using fakes::test_deadline;

class EchoTest : public testing::Test {
   protected:
    void SetUp() override {
        const UniqueFd listener =
            std::move(listen_on(Address::parse("127.0.0.1:0").value()).value());
        here_ =
            std::move(connect_to(local_address(listener.get()).value(), test_deadline()).value());
        const Interest readable{.fd = listener.get(), .input = true};
        ASSERT_TRUE(wait_for_any({&readable, 1}, std::chrono::seconds(30)));
        there_ = std::move(accept_next(listener.get()).value().value());
    }

    UniqueFd here_;
    UniqueFd there_;
};

TEST_F(EchoTest, AreAnsweredOnceAllBytesHaveCome) {
    Status ended;
    std::thread other([&] { ended = answer_echoes(there_.get(), test_deadline()); });
    const std::vector<std::byte> most(kMostEchoed);
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, kMostEchoed, std::size_t{0}}) {
        const auto echo = request_echo(here_.get(), std::span(most).first(bytes), test_deadline());
        ASSERT_TRUE(echo.is_ok()) << echo.status().to_string();
        EXPECT_GT(echo->sent, 0);
        EXPECT_GE(echo->answered, echo->sent);
    }
    here_.reset();
    other.join();
    EXPECT_EQ(ended.code(), StatusCode::kPeerLost) << ended.to_string();
}

TEST_F(EchoTest, OfMoreBytesThanMayFollowAreRefused) {
    std::array<std::byte, kEchoBytes> question{};
    const std::uint64_t bytes = kMostEchoed + 1;
    std::memcpy(question.data(), &bytes, sizeof bytes);
    ASSERT_TRUE(send_all(here_.get(), question, test_deadline()).is_ok());
    EXPECT_EQ(answer_echoes(there_.get(), test_deadline()).code(), StatusCode::kInvalidArgument);
}

TEST_F(EchoTest, EndWithoutARequestOrAnAnswer) {
    const Duration soon = std::chrono::milliseconds(5);
    EXPECT_EQ(answer_echoes(there_.get(), Deadline::after(soon)).code(), StatusCode::kTimeout);
    EXPECT_EQ(request_echo(here_.get(), {}, Deadline::after(soon)).status().code(),
              StatusCode::kTimeout);
}

TEST_F(EchoTest, EndWithTheDeadlineAlsoWhereQuestionsKeepComing) {
    std::array<std::byte, kEchoBytes> question{};
    ASSERT_TRUE(send_all(here_.get(), question, test_deadline()).is_ok());
    const Interest readable{.fd = there_.get(), .input = true};
    ASSERT_TRUE(wait_for_any({&readable, 1}, std::chrono::seconds(30)));
    const Deadline over = Deadline::after(Duration::zero());
    EXPECT_EQ(answer_echoes(there_.get(), over).code(), StatusCode::kTimeout);
    there_.reset();
    const auto answer = receive_all(here_.get(), question, test_deadline());
    EXPECT_EQ(answer.code(), StatusCode::kPeerLost) << "an answer came";
}

}  // namespace
}  // namespace pccl::sys
