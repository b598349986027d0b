// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "csrc/transport/tcp/piece_reader.h"
#include "csrc/transport/tcp/piece_sender.h"
#include "tests/cpp/transport/stripes.h"

namespace pccl::transport::tcp {
namespace {

constexpr std::size_t kKept = 2 * kMiB;

/// Both ends of a stream, whose sockets the test may cut by not handing them to the reader.
class PieceStreamTest : public testing::Test {
   protected:
    /// Adds a socket to the sender, and to the reader if it `arrives`.
    void add(std::size_t index, bool arrives = true) {
        Pair pair = tcp_pair();
        sender_.use(index, watched(std::move(pair.near)));
        if (arrives)
            reader_.use(index, watched(std::move(pair.far)));
        else
            held_.push_back(std::move(pair.far));
    }
    /// Hands the oldest cut socket to the reader.
    void heal(std::size_t index) {
        reader_.use(index, watched(std::move(held_.front())));
        held_.erase(held_.begin());
    }
    /// Moves bytes until the reader has `count` of them; `each_turn` runs between the steps.
    std::vector<std::byte> carry(
        const std::vector<std::byte>& bytes, std::size_t count,
        const std::function<void()>& each_turn = [] {}) {
        std::vector<std::byte> got(count);
        std::size_t sent = 0;
        std::size_t received = 0;
        const Deadline deadline = test_deadline();
        while (received < count && !deadline.passed()) {
            const Bytes rest = Bytes(bytes).subspan(sent);
            sent += sender_.send({&rest, 1}, Flush::kNow).value();
            received += reader_.read(MutableBytes(got).subspan(received)).value();
            each_turn();
        }
        EXPECT_EQ(received, count);
        return got;
    }
    WatchedSocket watched(UniqueFd socket) { return {std::move(socket), *waiter_}; }

    std::unique_ptr<Waiter> waiter_ = std::move(Waiter::create().value());
    PieceSender sender_{kKept, std::chrono::seconds(10)};
    PieceReader reader_;
    std::vector<UniqueFd> held_;
};

TEST_F(PieceStreamTest, BytesArriveInOrderOverSeveralSockets) {
    for (std::size_t i = 0; i < 3; ++i) add(i);
    const auto bytes = stamped(20 * kMiB + 17, 1);
    EXPECT_EQ(carry(bytes, bytes.size()), bytes);
}

TEST_F(PieceStreamTest, OtherSocketsCarryWhatASilentOneHas) {
    add(0);
    add(1, false);
    const auto bytes = stamped(8 * kMiB, 2);
    int turns = 0;
    const auto cut = [&] {
        if (++turns == 50) sender_.avoid(1, true);
    };
    EXPECT_EQ(carry(bytes, bytes.size(), cut), bytes);
}

TEST_F(PieceStreamTest, APieceThatArrivesTwiceCountsOnce) {
    add(0);
    add(1, false);
    const auto bytes = stamped(8 * kMiB, 3);
    int turns = 0;
    const auto cut = [&] {
        ++turns;
        if (turns == 50) sender_.avoid(1, true);
        if (turns == 60) heal(1);
        if (turns == 70) sender_.avoid(1, false);
    };
    EXPECT_EQ(carry(bytes, bytes.size(), cut), bytes);
    EXPECT_EQ(carry(bytes, bytes.size()), bytes);
}

TEST_F(PieceStreamTest, ASocketThatEndsLosesNothing) {
    add(0);
    add(1, false);
    const auto bytes = stamped(8 * kMiB, 4);
    int turns = 0;
    const auto cut = [&] {
        if (++turns == 50) held_.clear();
    };
    EXPECT_EQ(carry(bytes, bytes.size(), cut), bytes);
    EXPECT_FALSE(sender_.fault(1).is_ok());
}

TEST_F(PieceStreamTest, ANewSocketTakesTheOldOnesPlace) {
    add(0);
    add(1, false);
    const auto bytes = stamped(8 * kMiB, 5);
    int turns = 0;
    const auto replace = [&] {
        if (++turns == 50) add(1);
    };
    EXPECT_EQ(carry(bytes, bytes.size(), replace), bytes);
}

TEST_F(PieceStreamTest, TheSenderKeepsNoMoreThanItsShare) {
    add(0, false);
    const auto bytes = stamped(64 * kMiB, 6);
    const Bytes all = bytes;
    const std::size_t taken = sender_.send({&all, 1}, Flush::kNow).value();
    EXPECT_GE(taken, kKept);
    EXPECT_LE(taken, kKept + kPieceBytes);
    EXPECT_EQ(sender_.send({&all, 1}, Flush::kNow).value(), 0U);
}

TEST_F(PieceStreamTest, TheLastSocketsFaultEndsBothEnds) {
    Pair pair = tcp_pair();
    sender_.use(0, watched(std::move(pair.near)));
    pair.far.reset();
    const auto bytes = stamped(kMiB, 7);
    const Bytes all = bytes;
    const Deadline deadline = test_deadline();
    while (sender_.send({&all, 1}, Flush::kNow).is_ok() && !deadline.passed()) {
    }
    EXPECT_FALSE(deadline.passed());
}

TEST_F(PieceStreamTest, BytesThatAreNoPieceEndTheSocket) {
    Pair pair = tcp_pair();
    reader_.use(0, watched(std::move(pair.far)));
    const PieceHeader wrong{.number = 0, .bytes = kPieceBytes + 1};
    ASSERT_TRUE(sys::send_all(pair.near.get(), std::as_bytes(std::span(&wrong, 1)), test_deadline())
                    .is_ok());
    std::vector<std::byte> into(16);
    const Deadline deadline = test_deadline();
    auto got = reader_.read(into);
    while (got.is_ok() && !deadline.passed()) got = reader_.read(into);
    EXPECT_EQ(got.status().code(), StatusCode::kInvalidArgument);
}

TEST_F(PieceStreamTest, AReceiptForPiecesThatWereNotSentEndsTheSocket) {
    add(0, false);
    const Receipt wrong{.next = 1000};
    ASSERT_TRUE(
        sys::send_all(held_.front().get(), std::as_bytes(std::span(&wrong, 1)), test_deadline())
            .is_ok());
    const Deadline deadline = test_deadline();
    while (sender_.fault(0).is_ok() && !deadline.passed()) sender_.read_receipts();
    EXPECT_EQ(sender_.fault(0).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pccl::transport::tcp
