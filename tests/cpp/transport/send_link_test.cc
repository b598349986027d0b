// SPDX-License-Identifier: Apache-2.0

// A sender whose stream goes over several sockets.
#include "csrc/transport/tcp/send_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/tcp/recv_link.h"
#include "csrc/transport/transport.h"
#include "tests/cpp/transport/stripes.h"
#include "tests/fakes/deadlines.h"

namespace pccl::transport::tcp {
namespace {

using fakes::test_deadline;
using testing::HasSubstr;

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

}  // namespace
}  // namespace pccl::transport::tcp
