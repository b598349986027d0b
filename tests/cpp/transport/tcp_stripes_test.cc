// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/tcp/recv_link.h"
#include "csrc/transport/tcp/send_link.h"
#include "csrc/transport/transport.h"
#include "tests/fakes/deadlines.h"

namespace pccl::transport::tcp {
namespace {

using fakes::test_deadline;
using testing::HasSubstr;

constexpr std::size_t kBlock = 1024;

/// Byte i of a stream tells where it belongs.
std::vector<std::byte> stamped(std::size_t count, unsigned stream) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i)
        bytes[i] = static_cast<std::byte>((i * 2654435761U + stream * 97) >> 11);
    return bytes;
}

struct Pair {
    UniqueFd near;
    UniqueFd far;
};

Pair tcp_pair() {
    const sys::StreamOptions stream{.buffer_bytes = 1 * kMiB, .give_up = {}};
    auto listener = sys::listen_on(sys::Address::parse("127.0.0.1:0").value(), stream);
    const auto address = sys::local_address(listener->get());
    Pair pair;
    pair.near = std::move(sys::connect_to(*address, test_deadline(), stream).value());
    while (!pair.far.is_open()) {
        auto accepted = sys::accept_next(listener->get(), stream);
        if (accepted.is_ok() && accepted->has_value()) pair.far = std::move(**accepted);
    }
    return pair;
}

/// One end of a link as a transport makes it, of the near ends of sockets: the test has the far
/// ones, and so sees, and does, what a path or a peer may.
class StripesTest : public testing::Test {
   protected:
    void connect(std::size_t count) {
        far_.clear();
        near_.clear();
        for (std::size_t i = 0; i < count; ++i) {
            Pair pair = tcp_pair();
            near_.push_back(std::move(pair.near));
            far_.push_back(std::move(pair.far));
        }
    }
    /// Before it is part of a link.
    [[nodiscard]] int near(std::size_t socket) const { return near_[socket].get(); }
    LinkParts parts(std::size_t block) {
        std::vector<Stripes> channels;
        channels.emplace_back(watched(std::move(near_)), block, std::chrono::seconds(10));
        channels.emplace_back(watched(one()), block, std::chrono::seconds(10));
        const CloseContext close_context{.self = 0, .leaver = 3, .ranks = 8};
        return {.peer = 3,
                .peer_name = "rank 3 at its address",
                .channels = std::move(channels),
                .watch = PeerWatch(close_context, std::move(watched(one()).front()))};
    }
    std::unique_ptr<TcpSendLink> sender(std::size_t sockets, std::size_t block = kBlock) {
        connect(sockets);
        return std::make_unique<TcpSendLink>(parts(block));
    }
    std::unique_ptr<TcpRecvLink> receiver(std::size_t sockets, std::size_t block = kBlock) {
        connect(sockets);
        return std::make_unique<TcpRecvLink>(parts(block));
    }
    /// As the other end would: the number of a block, and some of its bytes.
    void put(std::size_t socket, BlockNumber number, Bytes bytes) {
        put(socket, std::as_bytes(std::span(&number, 1)));
        put(socket, bytes);
    }
    void put(std::size_t socket, Bytes bytes) {
        ASSERT_TRUE(sys::send_all(far_[socket].get(), bytes, test_deadline()).is_ok());
    }
    /// What is here of the stream within a moment, at most `count` bytes.
    static std::vector<std::byte> take(TcpRecvLink& link, std::size_t count,
                                       Duration moment = std::chrono::seconds(30)) {
        std::vector<std::byte> taken(count);
        std::size_t at = 0;
        for (const Deadline end = Deadline::after(moment); at < count && !end.passed();) {
            const auto got = link.receive(kCollectiveChannel, MutableBytes(taken).subspan(at));
            EXPECT_TRUE(got.is_ok()) << got.status().to_string();
            if (!got.is_ok()) break;
            at += *got;
        }
        taken.resize(at);
        return taken;
    }
    static Status fault_of(const std::function<Status()>& look) {
        Status found;
        for (const Deadline end = test_deadline(); found.is_ok() && !end.passed();) {
            found = look();
            system_clock().sleep_for(std::chrono::milliseconds(1));
        }
        return found;
    }
    static Status fault_of(TcpRecvLink& link) {
        std::array<std::byte, 8> into{};
        return fault_of([&] { return link.receive(kCollectiveChannel, into).status(); });
    }

    std::vector<UniqueFd> far_;

   private:
    std::vector<UniqueFd> one() {
        Pair pair = tcp_pair();
        std::vector<UniqueFd> sockets;
        sockets.push_back(std::move(pair.near));
        kept_.push_back(std::move(pair.far));
        return sockets;
    }
    std::vector<WatchedSocket> watched(std::vector<UniqueFd> sockets) {
        std::vector<WatchedSocket> watched;
        for (UniqueFd& socket : sockets) {
            watched.emplace_back(std::move(socket), *waiter_);
            EXPECT_TRUE(watched.back().watch().is_ok());
        }
        return watched;
    }

    std::unique_ptr<Waiter> waiter_ = std::move(Waiter::create().value());
    std::vector<UniqueFd> near_;
    std::vector<UniqueFd> kept_;
};

/// Whether the kernel acknowledges at once what this socket receives.
bool answers_at_once(int socket) {
    int value = 0;
    socklen_t bytes = sizeof value;
    EXPECT_EQ(::getsockopt(socket, IPPROTO_TCP, TCP_QUICKACK, &value, &bytes), 0);
    return value != 0;
}

TEST_F(StripesTest, ShortMessagesAreAcknowledgedWithDelayAndLongOnesAtOnce) {
    connect(1);
    const int socket = near(0);
    TcpRecvLink link(parts(1 * kMiB));
    const auto receive = [&](std::size_t bytes) {
        put(0, stamped(bytes, 0));
        EXPECT_EQ(take(link, bytes).size(), bytes);
    };
    EXPECT_TRUE(answers_at_once(socket));
    for (int i = 0; i < 8; ++i) receive(64);
    EXPECT_FALSE(answers_at_once(socket));
    receive(64 * kKiB);
    EXPECT_TRUE(answers_at_once(socket));
    for (int i = 0; i < 8; ++i) receive(64);
    EXPECT_FALSE(answers_at_once(socket));
}

TEST_F(StripesTest, OneSocketCarriesNothingButTheStream) {
    const auto link = sender(1);
    const auto bytes = stamped(5 * kBlock + 7, 1);
    ASSERT_EQ(link->send(kCollectiveChannel, bytes, Flush::kNow).value(), bytes.size());
    std::vector<std::byte> come(bytes.size());
    ASSERT_TRUE(sys::receive_all(far_[0].get(), come, test_deadline()).is_ok());
    EXPECT_EQ(come, bytes);
    link->abort(Status::aborted("no more"));
    std::byte more{};
    EXPECT_EQ(sys::receive_all(far_[0].get(), {&more, 1}, test_deadline()).code(),
              StatusCode::kPeerLost);
}

TEST_F(StripesTest, BlocksAreReadByTheirNumbersWhereverTheyCome) {
    const auto link = receiver(3);
    const auto bytes = stamped(4 * kBlock, 2);
    const auto block = [&](std::size_t i) { return Bytes(bytes).subspan(i * kBlock, kBlock); };
    put(2, 1, block(1));
    put(2, 2, block(2));
    put(0, 3, block(3).first(5));
    EXPECT_TRUE(take(*link, 1, std::chrono::milliseconds(50)).empty()) << "the first is missing";
    put(1, 0, block(0));
    put(0, block(3).subspan(5));
    EXPECT_EQ(take(*link, bytes.size()), bytes);
}

/// A stream whose blocks lie on sockets by chance.
struct Layout {
    Layout(std::size_t sockets, std::size_t blocks, unsigned seed)
        : bytes(stamped(blocks * kBlock, seed)), on(sockets), put(sockets) {
        std::mt19937 random(seed);
        for (BlockNumber number = 0; number < blocks; ++number) {
            auto& socket = on[random() % sockets];
            const auto head = std::as_bytes(std::span(&number, 1));
            socket.insert(socket.end(), head.begin(), head.end());
            const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(number * kBlock);
            socket.insert(socket.end(), at, at + kBlock);
        }
    }
    /// The next bytes of a socket, at most `count`.
    Bytes next(std::size_t socket, std::size_t count) {
        const Bytes rest = Bytes(on[socket]).subspan(put[socket]);
        const Bytes part = rest.first(std::min(count, rest.size()));
        put[socket] += part.size();
        return part;
    }

    std::vector<std::byte> bytes;
    std::vector<std::vector<std::byte>> on;  // by socket, with the numbers
    std::vector<std::size_t> put;
};

TEST_F(StripesTest, AnyLayoutThatComesInAnyPiecesIsReadInOrder) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        std::mt19937 random(seed);
        const std::size_t sockets = 2 + seed % 4;
        const auto link = receiver(sockets);
        Layout layout(sockets, 150, seed);
        std::vector<std::byte> taken;
        for (const Deadline end = test_deadline();
             taken.size() < layout.bytes.size() && !end.passed();) {
            const std::size_t socket = random() % sockets;
            put(socket, layout.next(socket, random() % (3 * kBlock)));
            std::vector<std::byte> into(random() % 2 == 0 ? random() % 20 : random() % 20'000);
            const auto got = link->receive(kCollectiveChannel, into);
            ASSERT_TRUE(got.is_ok()) << got.status().to_string();
            taken.insert(taken.end(), into.begin(),
                         into.begin() + static_cast<std::ptrdiff_t>(*got));
            const auto here = link->peek(kCollectiveChannel);
            ASSERT_TRUE(here.is_ok()) << here.status().to_string();
            const Bytes some = here->first(std::min<std::size_t>(here->size(), random() % 700));
            taken.insert(taken.end(), some.begin(), some.end());
            link->consume(kCollectiveChannel, some.size());
        }
        EXPECT_TRUE(taken == layout.bytes) << "seed " << seed;
    }
}

/// Reads a sender's sockets as a receiver must, and counts the blocks of each.
struct FarEnd {
    static constexpr std::size_t kFramed = sizeof(BlockNumber) + 128 * kKiB;

    void read(std::size_t socket, int fd, std::size_t bytes) {
        std::vector<std::byte> into(bytes);
        const auto got = sys::receive_some(fd, into);
        ASSERT_TRUE(got.is_ok()) << got.status().to_string();
        come[socket].insert(come[socket].end(), into.begin(),
                            into.begin() + static_cast<std::ptrdiff_t>(*got));
    }
    [[nodiscard]] std::size_t blocks(std::size_t socket) const {
        return come[socket].size() / kFramed;
    }
    /// All blocks by their numbers.
    [[nodiscard]] std::vector<std::byte> stream() const {
        std::vector<std::byte> bytes(128 * kKiB * (blocks(0) + blocks(1)));
        for (const auto& socket : come)
            for (std::size_t at = 0; at < socket.size(); at += kFramed) {
                BlockNumber number = 0;
                std::memcpy(&number, &socket[at], sizeof number);
                const std::size_t to = static_cast<std::size_t>(number) * 128 * kKiB;
                if (to + 128 * kKiB > bytes.size()) return {};
                std::memcpy(&bytes[to], &socket[at + sizeof number], 128 * kKiB);
            }
        return bytes;
    }

    std::array<std::vector<std::byte>, 2> come;
};

TEST_F(StripesTest, ASlowSocketGetsFewerBlocks) {
    const auto link = sender(2, 128 * kKiB);
    const auto bytes = stamped(24 * kMiB, 3);
    FarEnd far;
    std::size_t sent = 0;
    const auto received = [&] { return far.come[0].size() + far.come[1].size(); };
    const std::size_t framed = bytes.size() / (128 * kKiB) * FarEnd::kFramed;
    for (const Deadline end = test_deadline(); received() < framed && !end.passed();) {
        const auto taken = link->send(kCollectiveChannel, Bytes(bytes).subspan(sent), Flush::kNow);
        ASSERT_TRUE(taken.is_ok()) << taken.status().to_string();
        sent += *taken;
        far.read(0, far_[0].get(), 256 * kKiB);
        far.read(1, far_[1].get(), 64 * kKiB);
    }
    EXPECT_GT(far.blocks(0), 2 * far.blocks(1)) << "one path is four times as fast";
    EXPECT_GT(far.blocks(1), 0U);
    EXPECT_TRUE(far.stream() == bytes);
}

TEST_F(StripesTest, ASenderFindsThatOneSocketHasDied) {
    const auto link = sender(2);
    const auto bytes = stamped(kBlock, 5);
    far_[1].reset();
    const Status fault =
        fault_of([&] { return link->send(kCollectiveChannel, bytes, Flush::kNow).status(); });
    EXPECT_EQ(fault.code(), StatusCode::kPeerLost) << fault.to_string();
    EXPECT_EQ(fault.peer(), 3);
    EXPECT_THAT(fault.message(), HasSubstr("rank 3 at its address"));
}

TEST_F(StripesTest, AReceiverFindsThatOneSocketHasDied) {
    const auto link = receiver(2);
    const auto bytes = stamped(kBlock, 6);
    put(0, 0, bytes);
    far_[1].reset();
    EXPECT_EQ(take(*link, kBlock), bytes) << "what had arrived";
    const Status fault = fault_of(*link);
    EXPECT_EQ(fault.code(), StatusCode::kPeerLost) << fault.to_string();
    EXPECT_EQ(fault.peer(), 3);
    EXPECT_THAT(fault.message(), HasSubstr("rank 3 at its address"));
}

TEST_F(StripesTest, ASocketThatDiesWithinItsBlockIsFoundThoughOthersGoOn) {
    const auto link = receiver(2);
    const auto bytes = stamped(2 * kBlock, 7);
    put(0, 0, Bytes(bytes).first(10));
    put(1, 1, Bytes(bytes).subspan(kBlock));
    far_[0].reset();
    EXPECT_EQ(take(*link, 10).size(), 10U);
    EXPECT_EQ(fault_of(*link).code(), StatusCode::kPeerLost);
}

TEST_F(StripesTest, WhatIsOnTheWayStillComesThoughAnotherSocketHasEnded) {
    const auto link = receiver(2);
    const auto bytes = stamped(3 * kBlock, 8);
    put(0, 0, Bytes(bytes).first(kBlock));
    far_[0].reset();
    EXPECT_EQ(take(*link, kBlock).size(), kBlock);
    EXPECT_TRUE(take(*link, 1, std::chrono::milliseconds(20)).empty());
    put(1, 1, Bytes(bytes).subspan(kBlock, kBlock));
    put(1, 2, Bytes(bytes).subspan(2 * kBlock));
    far_[1].reset();
    const auto rest = take(*link, 2 * kBlock);
    EXPECT_TRUE(std::ranges::equal(rest, Bytes(bytes).subspan(kBlock)));
    EXPECT_EQ(fault_of(*link).code(), StatusCode::kPeerLost);
}

TEST_F(StripesTest, NumbersThatCannotBeAreRefused) {
    const auto bytes = stamped(kBlock, 9);
    {
        const auto link = receiver(2);
        put(0, 0, bytes);
        put(1, 0, bytes);
        EXPECT_EQ(take(*link, kBlock).size(), kBlock);
        EXPECT_THAT(fault_of(*link).message(), HasSubstr("block 0 came where 1 or a later one"));
    }
    const auto link = receiver(2);
    put(0, 7, bytes);
    put(1, 8, bytes);
    EXPECT_THAT(fault_of(*link).message(), HasSubstr("block 0 is due, and all sockets have later"));
}

}  // namespace
}  // namespace pccl::transport::tcp
