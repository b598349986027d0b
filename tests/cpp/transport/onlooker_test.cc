// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "csrc/transport/control/handshake.h"
#include "csrc/transport/control/inquiry.h"
#include "csrc/transport/control/socket_control_plane.h"
#include "tests/cpp/transport/control_visitors.h"
#include "tests/cpp/transport/group_identity.h"
#include "tests/fakes/deadlines.h"

namespace pccl::transport {
namespace {

using fakes::test_deadline;
using testing::HasSubstr;

/// How a client fails that proves `secret`.
Status refusal(SocketControlPlane& control, ControlReceptionist& host,
               const Introduction& introduction, const Secret& secret) {
    const ConnectArgs door{.address = sys::Address::parse(control.address().doors.front()).value(),
                           .secret = secret};
    const auto client = HandshakeClient::start(door, {&introduction, 1}, nullptr).value();
    Status status;
    for (const Deadline deadline = test_deadline(); status.is_ok() && !deadline.passed();) {
        status = client->advance().status();
        control.advance(host);
    }
    return status;
}

/// What an onlooker is told at a door that another thread serves.
Result<std::string> look(SocketControlPlane& control, const std::string& door, const Secret& job) {
    ControlReceptionist host;
    std::atomic<bool> over{false};
    std::thread acceptor([&] {
        while (!over.load()) control.advance(host);
    });
    auto answer =
        request_status(sys::Address::parse(door).value(), job, {.first = 3}, test_deadline());
    over.store(true);
    acceptor.join();
    return answer;
}

TEST(SocketControlPlaneTest, WithoutASecretOfTheJobOnlyItsHostMayLook) {
    const auto control = make({.interface = "127.0.0.0/8"});
    const auto within = look(*control, control->address().doors[0], kNoJobSecret);
    ASSERT_TRUE(within.is_ok()) << within.status().to_string();
    EXPECT_EQ(*within, "from 3 on");
    const Status between = look(*control, control->address().doors[1], kNoJobSecret).status();
    EXPECT_EQ(between.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(between.message(), HasSubstr("does not prove the secret"));
}

TEST(SocketControlPlaneTest, WithASecretOfTheJobWhoHasItMayLook) {
    const auto control = make({.interface = "127.0.0.0/8", .job = kSecret});
    for (const std::string& door : control->address().doors) {
        const auto answer = look(*control, door, kSecret);
        ASSERT_TRUE(answer.is_ok()) << answer.status().to_string();
        EXPECT_EQ(*answer, "from 3 on");
        EXPECT_EQ(look(*control, door, kNoJobSecret).status().code(), StatusCode::kInvalidArgument);
    }
}

TEST(SocketControlPlaneTest, AnOnlookerMayRequestNothingMore) {
    const auto control = make({.between_hosts = false});
    ControlReceptionist host;
    for (const Service service :
         {Service::kLink, Service::kRegion, Service::kQuery, Service::kNotice}) {
        const Introduction introduction{.request = {.group = kOnlookers}, .service = service};
        const Status refused = refusal(*control, host, introduction, kNoJobSecret);
        EXPECT_EQ(refused.code(), StatusCode::kPeerLost);
    }
    EXPECT_TRUE(host.arrivals.empty());
    EXPECT_EQ(host.refusals.size(), 4U);
}

TEST(SocketControlPlaneTest, ARankOfAGroupIsNoOnlooker) {
    const auto control = make({.between_hosts = false});
    ControlReceptionist host;
    const Introduction introduction{.request = kRequest, .service = Service::kStatus};
    EXPECT_EQ(refusal(*control, host, introduction, kSecret).code(), StatusCode::kPeerLost);
}

}  // namespace
}  // namespace pccl::transport
