#include "csrc/sys/socket/route.h"

#include <gtest/gtest.h>

namespace pccl::sys {
namespace {

TEST(RouteTest, ThisHostIsReachedByTheLoopback) {
    EXPECT_EQ(route_device(Address::from_ip("127.0.0.1", 1).value()).value(), "lo");
    EXPECT_EQ(route_device(Address::from_ip("127.8.9.10", 1).value()).value(), "lo");
}

TEST(RouteTest, SaysWhyThereIsNone) {
    const auto none = route_device(Address::from_unix_name("pccl-test").value());
    EXPECT_FALSE(none.is_ok());
    EXPECT_NE(none.status().message(), "");
}

}  // namespace
}  // namespace pccl::sys
