// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/transport_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pccl::transport {
namespace {

TEST(TransportFlagsTest, PrintsWhatItParsed) {
    for (const std::string text : {"", "shm", "shm,tcp", "loopback,shm,tcp,verbs,nvlink,netplugin"})
        EXPECT_EQ(TransportFlags::parse(text)->to_string(), text);
    EXPECT_EQ(TransportFlags::parse("tcp,shm,tcp")->to_string(), "shm,tcp");
    EXPECT_EQ(TransportFlags::parse(" shm,\ttcp ")->to_string(), "shm,tcp");
    EXPECT_EQ(TransportFlags::parse("loopback,shm,tcp,verbs,nvlink,netplugin").value(),
              TransportFlags::all());
}

TEST(TransportFlagsTest, NamesTheUnknownWordAndTheKnownOnes) {
    const Status status = TransportFlags::parse("shm,tpc").status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), testing::AllOf(testing::HasSubstr("\"tpc\""),
                                                 testing::HasSubstr("loopback,shm,tcp")));
    EXPECT_FALSE(TransportFlags::parse("shm,,tcp").is_ok());
    EXPECT_FALSE(TransportFlags::parse("shm tcp").is_ok());
    EXPECT_FALSE(TransportFlags::parse("SHM").is_ok());
}

TEST(TransportFlagsTest, IsASet) {
    const TransportFlags some = TransportFlags(TransportKind::kShm) | TransportKind::kTcp;
    EXPECT_TRUE(some.has(TransportKind::kTcp));
    EXPECT_FALSE(some.has(TransportKind::kVerbs));
    EXPECT_EQ(some & TransportKind::kTcp, TransportFlags(TransportKind::kTcp));
    EXPECT_TRUE((some & TransportKind::kNvlink).is_empty());
    EXPECT_EQ(TransportFlags::from_bits(some.bits()), some);
}

}  // namespace
}  // namespace pccl::transport
