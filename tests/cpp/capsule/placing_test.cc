// SPDX-License-Identifier: Apache-2.0

// Numbers of MSCCL's XML that are allowed each, and too large together.
#include "csrc/capsule/msccl/placing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "csrc/base/text/text.h"
#include "csrc/capsule/msccl/import.h"

namespace pccl::capsule {
namespace {

using ::testing::HasSubstr;

std::string gpu(int id) {
    const int other = 1 - id;
    return concat(R"(<gpu id=")", id,
                  R"(" i_chunks="16777216" o_chunks="16777216" s_chunks="1000">)",
                  R"(<tb id="0" send=")", other, R"(" recv=")", other, R"(" chan="0">)",
                  R"(<step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="1" )",
                  R"(depid="-1" deps="-1" hasdep="0"/></tb></gpu>)");
}

TEST(MscclLimitsTest, ScratchWhosePlacesAreTooManyIsRefused) {
    const std::string xml = concat(
        R"(<algo name="wide" nchannels="1" nchunksperloop="16777216" proto="Simple" ngpus="2" )",
        R"(coll="allreduce" inplace="0">)", gpu(0), gpu(1), "</algo>");
    const Status refused = import_msccl(xml, "wide.xml").status();
    EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
    EXPECT_THAT(refused.message(), HasSubstr("gpu 0 has 1000 chunks of scratch"));
}

}  // namespace
}  // namespace pccl::capsule
