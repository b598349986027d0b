// SPDX-License-Identifier: Apache-2.0

// What arrives, and is sent again, when one of several paths is lost.

#include <gmock/gmock.h>
#include <linux/filter.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <thread>

#include "plugins/nccl/nccl_log.h"
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

/// Lets the kernel drop all that comes for a socket, as a cut cable does.
void cut(int socket) {
    sock_filter drop{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0};
    const sock_fprog program{.len = 1, .filter = &drop};
    ASSERT_EQ(::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
}

std::string logged;

__attribute__((format(printf, 5, 6))) void keep_line(abi::net_plugin::LogLevel /*level*/,
                                                     unsigned long /*flags*/, const char* /*file*/,
                                                     int /*line*/, const char* format, ...) {
    std::array<char, 1024> text{};
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text.data(), text.size(), format, arguments);
    va_end(arguments);
    logged += text.data();
}

/// Messages whose requests have ended, over a path that carries nothing.
class ClosingTest : public testing::Test {
   protected:
    static constexpr std::size_t kMessages = 3;

    ClosingTest() {
        std::vector<Path> near;
        for (int i = 0; i < 2; ++i) {
            auto pair = transport::tcp::tcp_pair();
            far_.push_back(std::move(pair.far));
            near.push_back({.socket = std::move(pair.near)});
        }
        send_ = std::make_unique<SendComm>(Paths({.rank = 3, .host = "host-b"}, std::move(near)),
                                           std::chrono::milliseconds(100));
        logged.clear();
        nccl_log().set(&keep_line);
    }
    ~ClosingTest() override { nccl_log().set(nullptr); }
    void send() {
        for (unsigned i = 0; i < kMessages; ++i) {
            auto out = stamped(100, i);
            EXPECT_TRUE(CommEnds::is_done(**send_->isend(out)));
            std::ranges::fill(out, std::byte{0xee});  // the caller's again
        }
    }
    void close() {
        send_->finish();
        send_.reset();
    }
    void expect_messages(int socket) {
        for (unsigned i = 0; i < kMessages; ++i) {
            PieceHeader header{};
            read_exactly(socket, std::as_writable_bytes(std::span(&header, 1)));
            ASSERT_EQ(header.magic, PieceHeader::kMagic);
            std::vector<std::byte> in(header.message_bytes);
            read_exactly(socket, in);
            EXPECT_EQ(in, stamped(100, header.sequence));
        }
    }
    static void read_exactly(int socket, std::span<std::byte> into) {
        ASSERT_TRUE(sys::receive_all(socket, into, test_deadline()).is_ok());
    }

    std::vector<UniqueFd> far_;
    std::unique_ptr<SendComm> send_;
};

TEST_F(ClosingTest, MessagesThatHaveEndedTakeAnotherPathWhereTheirsBreaks) {
    cut(far_[0].get());
    send();
    far_[0].reset();
    close();
    expect_messages(far_[1].get());
}

TEST_F(ClosingTest, MessagesThatHaveEndedTakeAnotherPathWhereTheirsIsSilent) {
    cut(far_[0].get());
    send();
    close();
    expect_messages(far_[1].get());
}

TEST_F(ClosingTest, MessagesThatAreLostAreLogged) {
    for (const UniqueFd& each : far_) cut(each.get());
    send();
    close();
    EXPECT_THAT(logged, testing::HasSubstr(
                            "NET/PCCL: a connection to rank 3 on host-b is closed, and its last "
                            "messages may not have arrived: rank 3 on host-b is lost ("));
}

TEST_F(ClosingTest, ADeliveredMessageIsNotWaitedForAndNotLogged) {
    send();
    close();
    expect_messages(far_[0].get());
    EXPECT_EQ(logged, "");
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
