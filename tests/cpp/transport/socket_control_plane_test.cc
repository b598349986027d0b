// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/socket_control_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/transport/control/control_plane.h"
#include "tests/cpp/transport/control_visitors.h"
#include "tests/cpp/transport/group_identity.h"
#include "tests/fakes/deadlines.h"
#include "tests/fakes/no_descriptors.h"

namespace pccl::transport {
namespace {

using fakes::test_deadline;
using testing::HasSubstr;

TEST(SocketControlPlaneTest, QueriesOverTheNetworkWhereTheUnixSocketLeadsNowhere) {
    const auto control = make({.interface = "127.0.0.0/8"});
    const FarProcess far;
    ControlAddress peer = far.address();
    peer.doors.front() = "unix:@pccl-of-another-machine-with-this-identity";
    const auto answer = control->query(peer, kRequest, kSecret, test_deadline());
    ASSERT_TRUE(answer.is_ok()) << answer.status().to_string();
    EXPECT_EQ(*answer, "well");
    EXPECT_TRUE(control->probe(peer, test_deadline()).is_ok());
    peer.doors.pop_back();
    EXPECT_EQ(control->query(peer, kRequest, kSecret, test_deadline()).status().code(),
              StatusCode::kPeerLost);
}

TEST(SocketControlPlaneTest, WithoutDescriptorsItAnswersQuestionsAndNamesTheShortage) {
    const auto control = make({.between_hosts = false});
    ControlReceptionist host;
    Visitor requests(control->address().doors.front(), Service::kQuery);
    Visitor links(control->address().doors.front(), Service::kLink);
    const fakes::NoDescriptors none;
    const UniqueFd requested = requests.visit(*control, host);
    std::uint32_t bytes = 0;
    ASSERT_TRUE(sys::receive_all(requested.get(), std::as_writable_bytes(std::span(&bytes, 1)),
                                 test_deadline())
                    .is_ok());
    EXPECT_EQ(bytes, std::string_view("well").size());
    const UniqueFd linked = links.visit(*control, host);
    ASSERT_EQ(host.arrivals.size(), 1U);
    EXPECT_EQ(host.arrivals[0].shortage.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(host.arrivals[0].shortage.message(), HasSubstr("ulimit -n"));
}

}  // namespace
}  // namespace pccl::transport
