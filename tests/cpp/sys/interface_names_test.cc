// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/interface_names.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

#include "csrc/base/unique_fd.h"
#include "tests/cpp/sys/connected_sockets.h"

namespace pccl::sys {
namespace {

TEST(InterfaceNames, AConnectionOverTheLoopbackGoesByIt) {
    const Connection pair = connected(Address::parse("127.0.0.1:0").value());
    InterfaceNames names;
    EXPECT_EQ(names.name_of(pair.client.get()), "lo");
    EXPECT_EQ(names.name_of(pair.server.get()), "lo") << "by the cache";
}

TEST(InterfaceNames, OtherSocketsGoByNone) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    const UniqueFd one(ends[0]);
    const UniqueFd other(ends[1]);
    InterfaceNames names;
    EXPECT_EQ(names.name_of(one.get()), "");
    EXPECT_EQ(names.name_of(-1), "");
}

}  // namespace
}  // namespace pccl::sys
