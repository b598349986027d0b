// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/address_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>
#include <vector>

#include "csrc/base/scope_exit.h"
#include "csrc/base/text/text.h"
#include "csrc/transport/control/control_plane.h"
#include "tests/cpp/transport/control_visitors.h"
#include "tests/cpp/transport/group_identity.h"
#include "tests/fakes/deadlines.h"

namespace pccl::transport {
namespace {

using fakes::test_deadline;
using testing::HasSubstr;

TEST(SocketControlPlaneTest, FindsTheAddressAtWhichAPeerProvesItself) {
    const auto control = make({.interface = "127.0.0.0/8"});
    const FarProcess far;
    const FarProcess stranger;
    const std::string right = far.address().doors.back();
    const auto listener = sys::listen_on(sys::Address::parse("127.0.0.1:0").value()).value();
    const std::string silent = sys::local_address(listener.get())->to_string();
    const std::string refused = "127.0.0.1:1";
    for (const auto& addresses : std::vector<std::vector<std::string>>{
             {right, refused}, {refused, right}, {silent, right}, {refused, silent, right}}) {
        ControlAddress peer = far.address();
        peer.host = concat("elsewhere, with ", addresses.size(), " from ", addresses.front());
        const auto found =
            control->find_address(peer, addresses, kRequest, kSecret, test_deadline());
        ASSERT_TRUE(found.is_ok()) << found.status().to_string();
        EXPECT_EQ(*found, right);
    }
    ControlAddress peer = far.address();
    peer.host = "nowhere";
    const Status lost =
        control->find_address(peer, {refused, "127.0.0.2:1"}, kRequest, kSecret, test_deadline())
            .status();
    EXPECT_EQ(lost.code(), StatusCode::kPeerLost);
    EXPECT_EQ(lost.peer(), kRequest.destination);
    for (const char* part :
         {"127.0.0.1:1", "127.0.0.2:1", "Connection refused", "PCCL_SOCKET_IFNAME"})
        EXPECT_THAT(lost.message(), HasSubstr(part));
    const Status late = control
                            ->find_address(peer, {silent, silent}, kRequest, kSecret,
                                           Deadline::after(std::chrono::milliseconds(50)))
                            .status();
    EXPECT_EQ(late.code(), StatusCode::kTimeout);
}

TEST(SocketControlPlaneTest, AShortageHereDoesNotLoseAPeer) {
    const auto control = make({.interface = "127.0.0.0/8"});
    const FarProcess far;
    const std::string right = far.address().doors.back();
    ControlAddress peer = far.address();
    peer.host = "elsewhere, looked for without descriptors";
    const auto find = [&] {
        return control->find_address(peer, {right, "127.0.0.1:1"}, kRequest, kSecret,
                                     test_deadline());
    };
    {
        rlimit usual{};
        ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
        const rlimit none{.rlim_cur = 0, .rlim_max = usual.rlim_max};
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
        const ScopeExit lifted([&] { ::setrlimit(RLIMIT_NOFILE, &usual); });
        const Status status = find().status();
        EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
        EXPECT_THAT(status.message(), HasSubstr("cannot look for rank"));
        EXPECT_THAT(status.message(), HasSubstr("Too many open files"));
    }
    EXPECT_EQ(find().value(), right);
}

}  // namespace
}  // namespace pccl::transport
