// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/nvlink/peer_sockets.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/cpp/transport/nvlink_members.h"
#include "tests/fakes/deadlines.h"

namespace pccl::transport::nvlink {
namespace {

TEST(PeerSocketsTest, AStrangerIsRefusedAndAMissingRankNamed) {
    auto host = listen(0, 2);
    ASSERT_TRUE(host.is_ok());
    auto stranger = listen(1, 2, 8);
    ASSERT_TRUE(stranger.is_ok());
    const std::vector<std::string> addresses{(*host)->address(), (*stranger)->address()};
    std::thread thread([&] {
        const auto limit = Deadline::after(std::chrono::seconds(1));
        EXPECT_FALSE((*stranger)->connect(addresses, limit).is_ok());
    });
    const Status status =
        (*host)->connect(addresses, Deadline::after(std::chrono::milliseconds(400)));
    thread.join();
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_EQ(status.peer(), 1);
}

}  // namespace
}  // namespace pccl::transport::nvlink
