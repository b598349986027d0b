// SPDX-License-Identifier: Apache-2.0

// The control plane of real processes, beyond what all of them promise (tests/contract).
#include "csrc/transport/control/control_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/transport/control_visitors.h"

namespace pccl::transport {
namespace {

using testing::HasSubstr;

TEST(SocketControlPlaneTest, UsersAndKernelsShareNoMemory) {
    const ControlAddress here{.host = "a", .doors = {}, .kernel = "k", .user = 0};
    EXPECT_TRUE(may_share_memory(here, here).is_ok());
    ControlAddress there = here;
    there.user = 65534;
    EXPECT_THAT(may_share_memory(here, there).message(), HasSubstr("runs as user 65534"));
    there = here;
    there.kernel = "other";
    EXPECT_EQ(may_share_memory(here, there).code(), StatusCode::kUnavailable);
    there = here;
    there.host = "b";
    EXPECT_EQ(may_share_memory(here, there).code(), StatusCode::kUnavailable);
}

TEST(SocketControlPlaneTest, HandsOnWhatIsNeitherQuestionNorNotice) {
    const auto control = make({.between_hosts = false});
    ControlReceptionist host;
    for (const Service service : {Service::kLink, Service::kRegion}) {
        const UniqueFd socket =
            Visitor(control->address().doors.front(), service).visit(*control, host);
        ASSERT_EQ(host.arrivals.size(), 1U);
        EXPECT_EQ(host.arrivals[0].introduction.service, service);
        EXPECT_TRUE(host.arrivals[0].socket.is_open());
        EXPECT_TRUE(host.arrivals[0].shortage.is_ok());
        host.arrivals.clear();
    }
    EXPECT_TRUE(host.refusals.empty());
}

}  // namespace
}  // namespace pccl::transport
