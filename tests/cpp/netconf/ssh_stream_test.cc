// SPDX-License-Identifier: Apache-2.0
#include "csrc/netconf/ssh_stream.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

#include "csrc/netconf/session.h"

namespace pccl::netconf {
namespace {

TEST(SshStreamTest, SilentNameServiceBlocksNoStepAndIsNamed) {
    std::promise<void> answered;
    const sys::NameLookup lookup(
        "switch7", 830,
        [answer = answered.get_future().share()](const std::string&, std::uint16_t) {
            answer.wait();
            return Result<sys::Addresses>(Status::unavailable("there is no switch7"));
        });
    sys::SshArgs args;
    args.host = "switch7:830";
    NetconfSession session(make_ssh_stream(lookup, args));
    const auto ready = session.connect_step();
    ASSERT_TRUE(ready.is_ok()) << ready.status().to_string();
    EXPECT_FALSE(*ready);
    EXPECT_EQ(session.interest().fd, -1);  // looks again soon
    EXPECT_EQ(session.awaited(), "the name service, for the address of switch7");

    answered.set_value();
    static_cast<void>(lookup.wait(Deadline::never()));
    EXPECT_EQ(session.awaited(), "");
    const Status refused = session.connect_step().status();
    EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
    EXPECT_EQ(refused.message(), "switch7:830: there is no switch7");
}

}  // namespace
}  // namespace pccl::netconf
