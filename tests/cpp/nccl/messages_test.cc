// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <deque>
#include <random>

#include "tests/cpp/nccl/comm_ends.h"

namespace pccl::nccl {
namespace {

class MessagesTest : public testing::TestWithParam<std::size_t> {
   protected:
    CommEnds ends_{GetParam()};
};

TEST_P(MessagesTest, EverySizeArrivesWhole) {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{8}, kInlineBytes, kInlineBytes + 1,
          kPieceBytes - 1, kPieceBytes, kPieceBytes + 1, 3 * kMiB + 5}) {
        const auto out = stamped(size, 7);
        std::vector<std::byte> in(size + 16, std::byte{0x55});
        Request* const sent = ends_.send->isend(out).value();
        Request* const received = ends_.recv->irecv(in).value();
        EXPECT_EQ(ends_.finish(sent, received), size);
        EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin())) << size;
        EXPECT_TRUE(std::all_of(in.begin() + static_cast<std::ptrdiff_t>(size), in.end(),
                                [](std::byte byte) { return byte == std::byte{0x55}; }))
            << size;
    }
}

TEST_P(MessagesTest, AsManyAsNcclPostsAreInFlightAndOneMoreMustWait) {
    constexpr std::size_t kMost = abi::net_plugin::kMaxRequests;
    const auto out = stamped(kMost * 1000, 1);
    std::vector<std::byte> in(out.size());
    std::vector<Request*> sent;
    std::vector<Request*> received;
    for (std::size_t i = 0; i < kMost; ++i) {
        sent.push_back(ends_.send->isend({&out[i * 1000], 1000}).value());
        received.push_back(ends_.recv->irecv({&in[i * 1000], 1000}).value());
    }
    EXPECT_EQ(ends_.send->isend({out.data(), 1}).value(), nullptr);
    EXPECT_EQ(ends_.recv->irecv({in.data(), 1}).value(), nullptr);
    for (std::size_t i = 0; i < kMost; ++i) EXPECT_EQ(ends_.finish(sent[i], received[i]), 1000U);
    EXPECT_EQ(in, out);
    EXPECT_NE(ends_.send->isend({out.data(), 1}).value(), nullptr);
}

TEST_P(MessagesTest, MatchInTheOrderOfTheCallsWhateverTheirSizes) {
    std::mt19937 random(5);
    std::vector<std::vector<std::byte>> out;
    std::vector<std::vector<std::byte>> in;
    for (unsigned i = 0; i < 200; ++i) {
        const std::size_t size = i % 3 == 0 ? random() % 64 : random() % (2 * kPieceBytes);
        out.push_back(stamped(size, i));
        in.emplace_back(2 * kPieceBytes);
    }
    std::deque<Request*> sends;
    std::deque<Request*> receives;
    std::size_t begun = 0;
    std::size_t posted = 0;
    std::size_t received = 0;
    for (const Deadline end = test_deadline(); received < out.size();) {
        ASSERT_FALSE(end.passed());
        if (begun < out.size())
            if (Request* const request = ends_.send->isend(out[begun]).value();
                request != nullptr) {
                sends.push_back(request);
                ++begun;
            }
        // Receives come late: much has arrived by then.
        if (posted < out.size() && begun >= std::min(posted + 20, out.size()))
            if (Request* const request = ends_.recv->irecv(in[posted]).value();
                request != nullptr) {
                receives.push_back(request);
                ++posted;
            }
        if (!sends.empty() && CommEnds::is_done(*sends.front())) sends.pop_front();
        std::size_t bytes = 0;
        if (receives.empty() || !CommEnds::is_done(*receives.front(), &bytes)) continue;
        receives.pop_front();
        ASSERT_EQ(bytes, out[received].size());
        ASSERT_TRUE(std::ranges::equal(out[received], std::span(in[received]).first(bytes)));
        ++received;
    }
}

TEST_P(MessagesTest, ALongerMessageThanItsReceiveIsAnErrorThatNamesBoth) {
    const auto out = stamped(1000, 1);
    std::vector<std::byte> in(999);
    static_cast<void>(ends_.send->isend(out).value());
    const Status fault = CommEnds::fault_of(*ends_.recv->irecv(in).value());
    EXPECT_EQ(fault.code(), StatusCode::kMismatch);
    EXPECT_NE(fault.message().find("rank 2 on host-a sends 1000 bytes where 999 are expected"),
              std::string::npos)
        << fault.message();
}

TEST_P(MessagesTest, TheLossOfAPeerNamesItAndEachPath) {
    std::vector<std::byte> in(100);
    Request* const received = ends_.recv->irecv(in).value();
    ends_.send.reset();
    const Status fault = CommEnds::fault_of(*received);
    EXPECT_EQ(fault.code(), StatusCode::kPeerLost);
    EXPECT_EQ(fault.peer(), 2);
    EXPECT_NE(fault.message().find("rank 2 on host-a is lost ("), std::string::npos);
    for (std::size_t i = 0; i < GetParam(); ++i)
        EXPECT_NE(fault.message().find("b" + std::to_string(i)), std::string::npos)
            << fault.message();
    EXPECT_FALSE(ends_.recv->irecv(in).is_ok());
}

TEST_P(MessagesTest, ASenderLearnsThatItsPeerIsGone) {
    ends_.recv.reset();
    const auto out = stamped(64 * kMiB, 1);
    const auto sent = ends_.send->isend(out);
    const Status fault = sent.is_ok() ? CommEnds::fault_of(**sent) : sent.status();
    EXPECT_EQ(fault.code(), StatusCode::kPeerLost);
    EXPECT_NE(fault.message().find("rank 3 on host-b is lost"), std::string::npos);
}

TEST_P(MessagesTest, WhatWasSentBeforeTheSenderClosedArrives) {
    const auto out = stamped(20000, 1);
    std::vector<std::byte> in(out.size());
    Request* const sent = ends_.send->isend(out).value();
    while (!CommEnds::is_done(*sent)) {
    }
    ends_.send.reset();
    EXPECT_EQ(ends_.finish(nullptr, ends_.recv->irecv(in).value()), out.size());
    EXPECT_EQ(in, out);
}

INSTANTIATE_TEST_SUITE_P(Paths, MessagesTest, testing::Values(1, 2, 5));

}  // namespace
}  // namespace pccl::nccl
