// SPDX-License-Identifier: Apache-2.0

// Blocks that arrive on several sockets are read in the order of the stream.
#include "csrc/transport/tcp/block_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "csrc/transport/transport.h"
#include "tests/cpp/transport/stripes.h"
#include "tests/fakes/deadlines.h"

namespace pccl::transport::tcp {
namespace {

using fakes::test_deadline;
using testing::HasSubstr;

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
        EXPECT_THAT(fault_of(*link).message(), HasSubstr("block 0 arrived where 1 or a later one"));
    }
    const auto link = receiver(2);
    put(0, 7, bytes);
    put(1, 8, bytes);
    EXPECT_THAT(fault_of(*link).message(), HasSubstr("block 0 is due, and all sockets have later"));
}

}  // namespace
}  // namespace pccl::transport::tcp
