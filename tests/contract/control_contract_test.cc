// SPDX-License-Identifier: Apache-2.0

// What every control plane promises: questions, notices and probes between processes of a world.
#include <thread>
#include <vector>

#include "tests/contract/transport_contract.h"
#include "tests/fakes/deadlines.h"

namespace pccl::transport::contract {
namespace {

using fakes::test_deadline;

constexpr GroupId kGroup{1, 2, 3};
constexpr Secret kSecret{4, 5, 6};

LinkRequest request_to(Rank destination) {
    return {.group = kGroup, .source = 0, .destination = destination, .group_size = 4};
}

Result<std::string> request_status(Process& from, Process& to, Rank rank,
                                   const Secret& secret = kSecret) {
    return from.control().query(to.control().address(), request_to(rank), secret, test_deadline());
}

TEST_P(TransportContract, AQuestionIsAnsweredByWhomItIsFor) {
    const auto answer = request_status(process(0), process(3), 3);
    ASSERT_TRUE(answer.is_ok()) << answer.status().to_string();
    EXPECT_EQ(*answer, "rank 3 answers rank 0");
}

TEST_P(TransportContract, QuestionsOfManyThreadsAreAllAnswered) {
    process(0);
    process(1);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([this] {
            for (int round = 0; round < 20; ++round) {
                const auto answer = request_status(process(0), process(1), 1);
                EXPECT_TRUE(answer.is_ok()) << answer.status().to_string();
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(process(1).refusals(), 0);
}

TEST_P(TransportContract, ANoticeNamesTheBlamedRank) {
    const Status reason = Status::peer_lost(2, "the cable was cut");
    const Status completed = process(0).control().notify(
        process(1).control().address(), request_to(1), kSecret, reason, test_deadline());
    EXPECT_TRUE(completed.is_ok()) << completed.to_string();
    const Status notice = process(1).wait_for_notice();
    EXPECT_EQ(notice.code(), StatusCode::kPeerLost);
    EXPECT_EQ(notice.peer(), 2);
}

TEST_P(TransportContract, AQuestionWithoutTheSecretIsRefused) {
    const auto answer = request_status(process(0), process(1), 1, {9, 9});
    EXPECT_EQ(answer.status().code(), StatusCode::kPeerLost) << answer.status().to_string();
    EXPECT_EQ(answer.status().peer(), 1);
    process(1).wait_for_refusal();
}

TEST_P(TransportContract, AQuestionToAProcessThatIsGoneNamesIt) {
    const ControlAddress gone = process(2).control().address();
    EXPECT_TRUE(process(0).control().probe(gone, test_deadline()).is_ok());
    processes_.erase(2);
    const auto answer = process(0).control().query(gone, request_to(2), kSecret, test_deadline());
    EXPECT_EQ(answer.status().code(), StatusCode::kPeerLost) << answer.status().to_string();
    EXPECT_EQ(answer.status().peer(), 2);
    EXPECT_EQ(process(0).control().probe(gone, test_deadline()).code(), StatusCode::kPeerLost);
}

TEST_P(TransportContract, AQuestionThatNobodyAnswersEndsAtTheDeadline) {
    Process idle(make_);
    const ControlAddress address = idle.control().address();
    const auto answer = process(0).control().query(address, request_to(6), kSecret,
                                                   Deadline::after(std::chrono::milliseconds(200)));
    EXPECT_EQ(answer.status().code(), StatusCode::kTimeout) << answer.status().to_string();
    EXPECT_EQ(answer.status().peer(), 6);
    EXPECT_TRUE(process(0).control().probe(address, test_deadline()).is_ok()) << "it is there";
}

TEST_P(TransportContract, NoWayLeadsToAProcessWithoutDoors) {
    const ControlAddress nowhere{.host = "elsewhere", .doors = {}};
    const auto answer =
        process(0).control().query(nowhere, request_to(1), kSecret, test_deadline());
    EXPECT_EQ(answer.status().code(), StatusCode::kUnavailable) << answer.status().to_string();
    EXPECT_TRUE(process(0).control().probe(nowhere, test_deadline()).is_ok())
        << "that cannot be known";
}

}  // namespace
}  // namespace pccl::transport::contract
