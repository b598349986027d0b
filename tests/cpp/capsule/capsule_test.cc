// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/capsule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/capsule/program_bytes.h"
#include "csrc/capsule/sizes.h"
#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/capsule/written_capsules.h"
#include "tests/cpp/schedule/star.h"

namespace pccl::capsule {
namespace {

using schedule::CollectiveKind;
using schedule::Program;
using schedule::Schedule;
using schedule::SizeRange;
using testing::capsule_of;
using testing::file_of;
using testing::generated;
using ::testing::HasSubstr;

TEST(CapsuleTest, BytesThatAreInUseAreNotProvenAgain) {
    const Schedule star = schedule::testing::star(3);
    const VerifiedCapsule made = capsule_of(star);
    const VerifiedCapsule again = VerifiedCapsule::parse(made.bytes()).value();
    EXPECT_EQ(&again.schedule(), &made.schedule());
    const schedule::SourcePtr source = made.source();
    EXPECT_EQ(source->program(star.shape, 1), star.programs[1]);
}

TEST(CapsuleTest, AGroupUsesWhatItHasLoaded) {
    schedule::SourcePtr loaded;
    const Program* programs = nullptr;
    std::string bytes;
    {
        const VerifiedCapsule made = capsule_of(generated("ring", CollectiveKind::kAllReduce, 5));
        loaded = made.source();
        programs = made.schedule().programs.data();
        bytes = made.bytes();
    }
    EXPECT_EQ(VerifiedCapsule::parse(bytes).value().schedule().programs.data(), programs);
}

TEST(CapsuleTest, OtherBytesThanThoseInUseAreProven) {
    const VerifiedCapsule made = capsule_of(schedule::testing::star(3));
    const std::string lie = with(made, "rounds", 1);
    EXPECT_THAT(why_no_capsule(lie), HasSubstr("rounds"));
    EXPECT_THAT(why_no_capsule(lie), HasSubstr("rounds"));
    std::string changed = made.bytes();
    changed.back() = static_cast<char>(changed.back() ^ 1);
    EXPECT_THAT(why_no_capsule(changed), HasSubstr("digest"));
}

TEST(CapsuleTest, DigestsDistinguishProgramsAndNames) {
    const Schedule ring = generated("ring", CollectiveKind::kAllReduce, 4);
    const VerifiedCapsule one = capsule_of(ring);
    EXPECT_EQ(one.digest(), capsule_of(ring).digest());
    EXPECT_NE(one.digest(), capsule_of(ring, "other").digest());
    EXPECT_NE(one.digest(), capsule_of(generated("pat", CollectiveKind::kAllReduce, 4)).digest());
}

TEST(CapsuleTest, WrongProgramsAreRefusedWithTheStep) {
    Schedule star = schedule::testing::star(3);
    star.programs[0].lanes[0].pop_back();
    const Status status = VerifiedCapsule::make({.name = "star"}, star).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("rank 2 lane 0 step 1"));
    // A file of the same programs, whose digest is right.
    const VerifiedCapsule good = capsule_of(schedule::testing::star(3));
    EXPECT_THAT(why_no_capsule(file_of(good.manifest(), program_bytes(star))),
                HasSubstr("rank 2 lane 0 step 1"));
}

TEST(CapsuleTest, GivesASourceWithItsSizes) {
    const VerifiedCapsule capsule = capsule_of(schedule::testing::star(3));
    const auto source = capsule.source();
    EXPECT_EQ(source->name, "mine");
    EXPECT_EQ(source->sizes, SizeRange{});
    EXPECT_EQ(schedule::generate(*source, capsule.schedule().shape).value(), capsule.schedule());
    const auto small = capsule.source(SizeRange{.least = 0, .most = 10});
    EXPECT_TRUE(small->sizes->has(10));
    EXPECT_FALSE(small->sizes->has(11));
    EXPECT_EQ(small->tag(), source->tag());
}

}  // namespace
}  // namespace pccl::capsule
