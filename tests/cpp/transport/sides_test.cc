// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/sides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/transport/control/control_plane.h"
#include "tests/cpp/transport/control_visitors.h"
#include "tests/cpp/transport/group_identity.h"
#include "tests/fakes/deadlines.h"

namespace pccl::transport {
namespace {

using fakes::test_deadline;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(SocketControlPlaneTest, ListensOnTheRequestedSides) {
    const auto within = make({.between_hosts = false});
    EXPECT_THAT(within->address().doors, ElementsAre(StartsWith("unix:@pccl-")));
    EXPECT_EQ(within->between_hosts().status().code(), StatusCode::kUnavailable);
    const auto between = make({.within_host = false, .interface = "127.0.0.0/8"});
    EXPECT_THAT(between->address().doors, ElementsAre(StartsWith("127.0.0.1:")));
    EXPECT_EQ(between->within_host().status().code(), StatusCode::kUnavailable);
    EXPECT_EQ(between->poll_fds().size(), 1U);
    EXPECT_EQ(between->address().host, within->address().host);
}

TEST(SocketControlPlaneTest, ASideThatCannotBeHadLeavesTheOther) {
    const auto control = make({.interface = "=nope"});
    EXPECT_TRUE(control->within_host().is_ok());
    EXPECT_EQ(control->between_hosts().status().code(), StatusCode::kUnavailable);
    EXPECT_THAT(control->between_hosts().status().message(), HasSubstr("nope"));
    EXPECT_EQ(control->address().doors.size(), 1U);
}

TEST(SocketControlPlaneTest, OnlyItsOwnHostComesByTheUnixSocket) {
    const auto control = make({.interface = "127.0.0.0/8"});
    const auto other = make({.interface = "127.0.0.0/8"});
    ControlAddress near = other->address();
    near.doors.pop_back();
    EXPECT_TRUE(control->probe(near, test_deadline()).is_ok());
    ControlAddress far = other->address();
    far.host = "elsewhere";
    far.kernel = "another";
    const Status status = control->query(far, kRequest, kSecret, test_deadline()).status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr(other->address().doors.back()));
}

}  // namespace
}  // namespace pccl::transport
