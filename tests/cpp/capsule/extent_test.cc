// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/extent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/capsule/capsule_file.h"
#include "csrc/capsule/limits.h"
#include "tests/cpp/capsule/capsule_files.h"
#include "tests/cpp/capsule/written_capsules.h"

namespace pccl::capsule {
namespace {

using schedule::Schedule;
using testing::capsule_of;
using testing::generated;
using ::testing::HasSubstr;

TEST(CapsuleFileTest, LimitsCountForAllProgramsTogether) {
    VerificationSize together{.parts = kMostParts / 2 + 1};
    EXPECT_TRUE(check_extent(together).is_ok());
    together += together;
    EXPECT_THAT(check_extent(together).message(), HasSubstr("more than is verified"));
    std::vector<VerifiedCapsule> wide;
    for (const int ranks : {4, 5}) {
        Schedule ring = generated("ring", schedule::CollectiveKind::kAllReduce, ranks);
        const schedule::Step waits{.after = {2'200'000, schedule::Dependency{0, 0}}};
        for (schedule::Program& program : ring.programs) program.lanes.push_back({waits});
        wide.push_back(capsule_of(ring));
    }
    EXPECT_THAT(why_not(CapsuleFile::of(wide)), HasSubstr("more than is verified"));
}

}  // namespace
}  // namespace pccl::capsule
