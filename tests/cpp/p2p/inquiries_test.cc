// SPDX-License-Identifier: Apache-2.0

// Sessions look up the memory that their peers have published, by its name.
#include "csrc/p2p/messages/inquiries.h"

#include <gmock/gmock.h>

#include <thread>

#include "csrc/base/ids.h"
#include "tests/cpp/p2p/pair.h"

namespace pccl::p2p {
namespace {

using testing::HasSubstr;
using SessionTest = Pair;

TEST_P(SessionTest, WhatIsPublishedIsFetchedFromThePeerItself) {
    ASSERT_EQ(server_->publish("cache", theirs_.local).to_string(), "ok");
    const auto fetched = client_->fetch("server", "cache", test_deadline());
    ASSERT_TRUE(fetched.is_ok()) << fetched.status().to_string();
    EXPECT_EQ(fetched->owner(), server_->id());
    ASSERT_EQ(ended(client_->read(mine_.all(), all_of(*fetched))).to_string(), "ok");
    EXPECT_EQ(mine_.bytes(), theirs_.bytes());
    ASSERT_EQ(client_->publish("weights", mine_.local).to_string(), "ok");
    EXPECT_TRUE(server_->fetch("client", "weights", test_deadline()).is_ok()) << "both ask";
}

TEST_P(SessionTest, ANameStandsForWhatWasPublishedLastAndForNothingAfterwards) {
    const Stamped other(*server_, 100, 3);
    const auto is_notified = [&](const LocalMemory& memory) {
        const auto fetched = client_->fetch("server", "cache", test_deadline());
        return fetched.is_ok() &&
               fetched->imported().descriptor.id == registered(memory).descriptor().id;
    };
    const auto expect_none = [&](const std::string& names) {
        const Status none = client_->fetch("server", "cache", test_deadline()).status();
        EXPECT_EQ(none.code(), StatusCode::kUnavailable) << none.to_string();
        EXPECT_THAT(none.message(),
                    testing::AllOf(HasSubstr("session \"server\""),
                                   HasSubstr("no memory \"cache\""), HasSubstr(names)));
    };
    expect_none("there is none");
    ASSERT_EQ(server_->publish("cache", theirs_.local).to_string(), "ok");
    ASSERT_EQ(server_->publish("other", theirs_.local).to_string(), "ok");
    EXPECT_TRUE(is_notified(*theirs_.local));
    ASSERT_EQ(server_->publish("cache", other.local).to_string(), "ok");
    EXPECT_TRUE(is_notified(*other.local));
    ASSERT_EQ(server_->deregister_memory(other.local).to_string(), "ok");
    expect_none("there are: other");
    ASSERT_EQ(server_->publish("cache", theirs_.local).to_string(), "ok");
    server_->withdraw("cache");
    expect_none("there are: other");
    EXPECT_EQ(server_->publish("cache", other.local).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(server_->publish("cache", mine_.local).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(server_->publish("a b", theirs_.local).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(client_->fetch("server", "", test_deadline()).status().code(),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(client_->fetch("nobody", "cache", test_deadline()).status().code(),
              StatusCode::kInvalidArgument);
}

TEST_P(SessionTest, ManyThreadsFetchAtTheSameTime) {
    constexpr int kNames = 40;
    std::vector<std::unique_ptr<Stamped>> all;
    for (int i = 0; i < kNames; ++i) {
        all.push_back(std::make_unique<Stamped>(*server_, 64 + i, i));
        ASSERT_TRUE(server_->publish(std::to_string(i), all.back()->local).is_ok());
    }
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread)
        threads.emplace_back([&] {
            for (int i = 0; i < kNames; ++i) {
                const auto fetched = client_->fetch("server", std::to_string(i), test_deadline());
                if (fetched.is_ok() && fetched->bytes() == 64U + static_cast<unsigned>(i)) ++right;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(right.load(), 4 * kNames);
}

TEST_P(SessionTest, AQuestionIsAnsweredByWhatWasPublishedBeforeIt) {
    for (int i = 0; i < 50; ++i) {
        // Its answer, that there is nothing, may come after the next question.
        static_cast<void>(client_->fetch("server", "later", Deadline::after(Duration::zero())));
        ASSERT_TRUE(server_->publish("later", theirs_.local).is_ok());
        const Status found = client_->fetch("server", "later", test_deadline()).status();
        ASSERT_EQ(found.to_string(), "ok") << i;
        server_->withdraw("later");
    }
}

TEST_P(SessionTest, WhoFetchesFromOneThatHasGoneLearnsThat) {
    ASSERT_EQ(server_->publish("cache", theirs_.local).to_string(), "ok");
    ASSERT_TRUE(client_->fetch("server", "cache", test_deadline()).is_ok());
    const Status late =
        client_->fetch("server", "cache", Deadline::after(Duration::zero())).status();
    if (!late.is_ok()) {
        EXPECT_EQ(late.code(), StatusCode::kTimeout) << late.to_string();
    }
    server_->close();
    const Status gone = client_->fetch("server", "cache", test_deadline()).status();
    EXPECT_EQ(gone.code(), StatusCode::kPeerLost) << gone.to_string();
    EXPECT_THAT(gone.message(), HasSubstr("session \"server\""));
}

}  // namespace
}  // namespace pccl::p2p
