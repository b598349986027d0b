// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/route.h"

#include <gtest/gtest.h>

#include "csrc/sys/socket/interfaces.h"

namespace pccl::sys {
namespace {

TEST(RouteTest, ThisHostIsReachedByTheLoopback) {
    EXPECT_EQ(route_device(Address::from_ip("127.0.0.1", 1).value()).value(), "lo");
    EXPECT_EQ(route_device(Address::from_ip("127.8.9.10", 1).value()).value(), "lo");
}

TEST(RouteTest, FindsTheAddressThatConnectionsStartFrom) {
    for (const char* loopback : {"127.0.0.1", "127.8.9.10"}) {
        const auto source = route_source(Address::from_ip(loopback, 1).value());
        ASSERT_TRUE(source.is_ok()) << source.status().to_string();
        EXPECT_TRUE(source->is_loopback());
        EXPECT_EQ(source->port(), 0);
    }
    EXPECT_FALSE(route_source(Address::from_unix_name("pccl-test").value()).is_ok());
    const auto interfaces = list_interfaces();
    for (const Interface& own : interfaces.value()) {
        if (!own.running || own.loopback || own.address.is_link_local()) continue;
        const auto source = route_source(own.address);
        EXPECT_TRUE(source.is_ok() && source->same_ip(own.address)) << own.address.to_string();
    }
}

TEST(RouteTest, NoLoopbackLeadsTowardAStore) {
    for (const char* host : {"127.0.0.1", "localhost", "::1", "no such host", ""})
        EXPECT_TRUE(sources_toward(host).empty()) << host;
}

TEST(RouteTest, NamesTheReasonWhereThereIsNone) {
    const auto none = route_device(Address::from_unix_name("pccl-test").value());
    EXPECT_FALSE(none.is_ok());
    EXPECT_NE(none.status().message(), "");
}

}  // namespace
}  // namespace pccl::sys
