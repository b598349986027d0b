// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/block_writer.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/transport.h"
#include "tests/cpp/transport/stripes.h"
#include "tests/fakes/deadlines.h"

namespace pccl::transport::tcp {
namespace {

using fakes::test_deadline;

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

}  // namespace
}  // namespace pccl::transport::tcp
