// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/echoes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "csrc/sys/socket/echo.h"
#include "csrc/transport/control/handshake.h"
#include "tests/cpp/transport/control_visitors.h"
#include "tests/cpp/transport/group_identity.h"
#include "tests/fakes/deadlines.h"

namespace pccl::transport {
namespace {

using fakes::test_deadline;

TEST(SocketControlPlaneTest, AnswersEchoesOfMembersWithoutItsHost) {
    const auto control = make({.within_host = false, .interface = "127.0.0.0/8"});
    ControlReceptionist host;
    std::atomic<bool> is_over{false};
    std::thread acceptor([&] {
        while (!is_over.load()) control->advance(host);
    });
    ConnectArgs args{.address = sys::Address::parse(control->address().doors.front()).value(),
                     .secret = kSecret};
    bool is_answered = false;  // within EchoServer::kLongest, which load may keep it from
    for (const Deadline deadline = test_deadline(); !is_answered && !deadline.passed();) {
        const auto connection = connect_for_echoes(args, kRequest, test_deadline());
        ASSERT_TRUE(connection.is_ok()) << connection.status().to_string();
        is_answered = sys::request_echo(connection->get(), {}, test_deadline()).is_ok();
    }
    EXPECT_TRUE(is_answered);
    args.secret = {9};
    EXPECT_FALSE(connect_for_echoes(args, kRequest, test_deadline()).is_ok());
    is_over.store(true);
    acceptor.join();
    EXPECT_TRUE(host.arrivals.empty());
}

}  // namespace
}  // namespace pccl::transport
