// SPDX-License-Identifier: Apache-2.0

// What arrives, and is sent again, when one of several paths is lost.

#include <algorithm>
#include <thread>

#include "tests/cpp/nccl/comm_ends.h"

namespace pccl::nccl {
namespace {

/// Receiving end, whose far ends the test has: it sends what a sender may send.
class ReceivedPiecesTest : public testing::Test {
   protected:
    ReceivedPiecesTest() {
        std::vector<Path> paths;
        for (int i = 0; i < 2; ++i) {
            auto pair = transport::tcp::tcp_pair();
            sockets_.push_back(std::move(pair.near));
            paths.push_back({.socket = std::move(pair.far)});
        }
        recv_ = std::make_unique<RecvComm>(Paths({.rank = 2, .host = "host-a"}, std::move(paths)));
    }
    void put(std::size_t path, std::uint32_t sequence, std::span<const std::byte> message,
             std::size_t offset, std::size_t bytes = kPieceBytes) {
        const PieceHeader header{
            .sequence = sequence, .message_bytes = message.size(), .offset = offset};
        put(path, std::as_bytes(std::span(&header, 1)));
        put(path, message.subspan(offset, std::min(bytes, header.length(kPieceBytes))));
    }
    void put(std::size_t path, std::span<const std::byte> bytes) {
        ASSERT_TRUE(sys::send_all(sockets_[path].get(), bytes, test_deadline()).is_ok());
    }
    std::size_t finish(Request* request) {
        std::size_t bytes = 0;
        const Deadline end = test_deadline();
        while (!CommEnds::is_done(*request, &bytes) && !end.passed()) {
        }
        EXPECT_FALSE(end.passed());
        return bytes;
    }

    std::vector<UniqueFd> sockets_;
    std::unique_ptr<RecvComm> recv_;
    const std::vector<std::byte> first_ = stamped(2 * kPieceBytes, 1);
    const std::vector<std::byte> second_ = stamped(2 * kPieceBytes, 2);
    std::vector<std::byte> in_ = std::vector<std::byte>(2 * kPieceBytes);
};

TEST_F(ReceivedPiecesTest, PiecesThatComeTwiceCountOnce) {
    Request* const received = recv_->irecv(in_).value();
    put(0, 0, first_, 0);
    put(1, 0, first_, 0);
    put(0, 0, first_, kPieceBytes);
    EXPECT_EQ(finish(received), first_.size());
    EXPECT_EQ(in_, first_);
    put(1, 0, first_, kPieceBytes);
    put(1, 1, second_, 0);
    put(1, 1, second_, kPieceBytes);
    EXPECT_EQ(finish(recv_->irecv(in_).value()), second_.size());
    EXPECT_EQ(in_, second_);
}

TEST_F(ReceivedPiecesTest, ALostPathsHalfPieceComesOverAnother) {
    Request* const received = recv_->irecv(in_).value();
    put(0, 0, first_, 0, 1000);
    put(1, 0, first_, kPieceBytes);
    for (int i = 0; i < 100; ++i) ASSERT_FALSE(CommEnds::is_done(*received));
    sockets_[0].reset();
    put(1, 0, first_, 0);
    EXPECT_EQ(finish(received), first_.size());
    EXPECT_EQ(in_, first_);
}

TEST_F(ReceivedPiecesTest, TheRestOfANeedlessPieceStaysOutOfTheCallersMemory) {
    Request* const received = recv_->irecv(in_).value();
    put(0, 0, first_, 0, 1000);
    for (int i = 0; i < 100; ++i) ASSERT_FALSE(CommEnds::is_done(*received));
    put(1, 0, first_, 0);
    put(1, 0, first_, kPieceBytes);
    EXPECT_EQ(finish(received), first_.size());
    std::ranges::fill(in_, std::byte{0x55});  // the caller's again
    put(0, std::span(first_).subspan(1000, kPieceBytes - 1000));
    put(0, 1, second_, 0);
    put(1, 1, second_, kPieceBytes);
    std::vector<std::byte> next(2 * kPieceBytes);
    EXPECT_EQ(finish(recv_->irecv(next).value()), second_.size());
    EXPECT_EQ(next, second_);
    EXPECT_TRUE(std::ranges::all_of(in_, [](std::byte byte) { return byte == std::byte{0x55}; }));
}

TEST_F(ReceivedPiecesTest, APieceBehindThoseOfALaterMessageIsReachedWithoutItsReceive) {
    Request* const received = recv_->irecv(in_).value();
    put(1, 1, second_, kPieceBytes);
    put(1, 1, second_, 0);
    put(1, 0, first_, 0);
    put(1, 0, first_, kPieceBytes);
    EXPECT_EQ(finish(received), first_.size());
    EXPECT_EQ(in_, first_);
    EXPECT_EQ(finish(recv_->irecv(in_).value()), second_.size());
    EXPECT_EQ(in_, second_);
}

TEST_F(ReceivedPiecesTest, APieceOutsideOfItsMessageIsTheLossOfThePeer) {
    Request* const received = recv_->irecv(in_).value();
    PieceHeader header{.sequence = 0, .message_bytes = 100, .offset = kPieceBytes};
    put(0, std::as_bytes(std::span(&header, 1)));
    header = {.sequence = 0, .message_bytes = 2 * kPieceBytes, .offset = 5};
    put(1, std::as_bytes(std::span(&header, 1)));
    EXPECT_EQ(CommEnds::fault_of(*received).code(), StatusCode::kPeerLost);
}

TEST_F(ReceivedPiecesTest, PiecesThatDisagreeAboutTheirMessageAreAnError) {
    Request* const received = recv_->irecv(in_).value();
    put(0, 0, first_, 0);
    put(1, 0, std::span(first_).first(kPieceBytes + 7), kPieceBytes);
    EXPECT_EQ(CommEnds::fault_of(*received).code(), StatusCode::kMismatch);
}

class LostPathTest : public testing::TestWithParam<std::size_t> {};

TEST_P(LostPathTest, EveryMessageArrivesOnceWhereverAPathBreaks) {
    CommEnds ends(3);
    std::vector<std::byte> in(8 * kMiB);
    for (unsigned i = 0; i < 6; ++i) {
        auto out = stamped(i % 2 == 0 ? in.size() : 100, i);
        Request* const sent = ends.send->isend(out).value();
        Request* received = ends.recv->irecv(in).value();
        for (std::size_t step = 0; step < GetParam(); ++step) {
            ASSERT_TRUE(ends.recv->progress().is_ok());
            ASSERT_TRUE(ends.send->progress().is_ok());
        }
        if (i == 2) break_connection(ends.near_sockets[0]);
        if (i == 4) break_connection(ends.near_sockets[2]);
        ASSERT_EQ(ends.finish(sent, received), out.size());
        ASSERT_TRUE(std::ranges::equal(out, std::span(in).first(out.size()))) << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Steps, LostPathTest, testing::Values(0, 1, 2, 5, 10, 20, 50, 100));

TEST(LostPathsTest, ASendEndsWhereItsReceiverHasAllOfItAndClosed) {
    CommEnds ends(2);
    const auto out = stamped(8 * kMiB, 1);
    std::vector<std::byte> in(out.size());
    Request* const sent = ends.send->isend(out).value();
    Request* const received = ends.recv->irecv(in).value();
    for (const Deadline end = test_deadline(); !CommEnds::is_done(*received);) {
        ASSERT_TRUE(ends.send->progress().is_ok());
        ASSERT_FALSE(end.passed());
    }
    // The sender does not see the acknowledgements of one path, and sends its pieces again, which
    // nobody reads.
    break_connection(ends.near_sockets[0]);
    ends.recv.reset();
    for (const Deadline end = test_deadline(); !CommEnds::is_done(*sent);)
        ASSERT_FALSE(end.passed());
    EXPECT_EQ(in, out);
}

TEST(LostPathsTest, AShortMessageWhoseRequestHasEndedIsSentAgain) {
    CommEnds ends(2);
    // Its path is broken before the kernel could send it.
    for (unsigned round = 0; round < 2; ++round) {
        const auto out = stamped(100, round);
        Request* const sent = ends.send->isend(out).value();
        EXPECT_TRUE(CommEnds::is_done(*sent));
        if (round == 0) break_connection(ends.near_sockets[0]);
    }
    for (unsigned round = 0; round < 2; ++round) {
        std::vector<std::byte> in(100);
        Request* received = ends.recv->irecv(in).value();
        for (const Deadline end = test_deadline(); !CommEnds::is_done(*received);) {
            ASSERT_TRUE(ends.send->progress().is_ok());
            ASSERT_FALSE(end.passed());
        }
        EXPECT_EQ(in, stamped(100, round));
    }
}

}  // namespace
}  // namespace pccl::nccl
