// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/address.h"

#include <gtest/gtest.h>

#include <string>

namespace pccl::sys {
namespace {

TEST(AddressTest, PrintsWhatItParsed) {
    for (const std::string text : {"10.0.0.1:4567", "127.0.0.1:0", "[::1]:65535", "[fd00::1]:80",
                                   "[fe80::1%lo]:9", "unix:@pccl-0a1b", "unix:@a"}) {
        const auto address = Address::parse(text);
        ASSERT_TRUE(address.is_ok()) << address.status().to_string();
        EXPECT_EQ(address->to_string(), text);
        EXPECT_EQ(address.value(), Address::parse(text).value());
    }
}

TEST(AddressTest, ReturnsItsIpAlone) {
    for (const char* const ip : {"10.0.0.1", "fd00::1", "fe80::1%lo"})
        EXPECT_EQ(Address::from_ip(ip, 4567)->ip_text(), ip);
    EXPECT_EQ(Address::from_unix_name("name")->ip_text(), "");
    EXPECT_EQ(Address().ip_text(), "");
}

TEST(AddressTest, RefusesWhatIsNoAddress) {
    for (const std::string text : {"",
                                   ":",
                                   "1.2.3.4",
                                   "1.2.3.4:",
                                   "1.2.3.4:65536",
                                   "1.2.3.4:-1",
                                   "1.2.3.4:80x",
                                   "1.2.3:80",
                                   "256.1.1.1:80",
                                   "host:80",
                                   "::1:80",
                                   "[::1]",
                                   "[1.2.3.4]:80",
                                   "[]:80",
                                   "[::1%]:80",
                                   "[fe80::1%no-such-interface]:80",
                                   "1.2.3.4%lo:80",
                                   "unix:",
                                   "unix:@",
                                   "unix:@a b",
                                   "unix:@\n",
                                   "/path"}) {
        EXPECT_EQ(Address::parse(text).status().code(), StatusCode::kInvalidArgument) << text;
    }
}

TEST(AddressTest, RefusesTextsWithoutBound) {
    const std::string digits(1'000'000, '1');
    const auto status = Address::parse(digits + ":80").status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_LT(status.message().size(), 1000U);
    EXPECT_FALSE(Address::from_unix_name(std::string(101, 'a')).is_ok());
    EXPECT_TRUE(Address::from_unix_name(std::string(100, 'a')).is_ok());
}

TEST(AddressTest, RecognizesLoopbackAndLinkLocal) {
    EXPECT_TRUE(Address::parse("127.8.9.1:1")->is_loopback());
    EXPECT_TRUE(Address::parse("[::1]:1")->is_loopback());
    EXPECT_FALSE(Address::parse("10.0.0.1:1")->is_loopback());
    EXPECT_FALSE(Address::parse("unix:@x")->is_loopback());
    EXPECT_TRUE(Address::parse("169.254.3.4:1")->is_link_local());
    EXPECT_TRUE(Address::parse("[fe80::1]:1")->is_link_local());
    EXPECT_TRUE(Address::parse("[febf::1]:1")->is_link_local());
    EXPECT_FALSE(Address::parse("[fec0::1]:1")->is_link_local());
    EXPECT_FALSE(Address::parse("[fd00::1]:1")->is_link_local());
}

TEST(AddressTest, ChangesPortAndScopeInACopy) {
    const Address address = Address::parse("[fe80::1]:1").value();
    EXPECT_EQ(address.with_port(7).port(), 7);
    EXPECT_EQ(address.port(), 1);
    EXPECT_EQ(address.with_scope(1).to_string(), "[fe80::1%lo]:1");
    EXPECT_FALSE(address == address.with_scope(1));
    EXPECT_EQ(Address().to_string(), "none");
}

}  // namespace
}  // namespace pccl::sys
