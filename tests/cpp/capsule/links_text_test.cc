// SPDX-License-Identifier: Apache-2.0

// The links along which ranks send, as the manifest lists them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "csrc/capsule/capsule.h"
#include "csrc/capsule/program_bytes.h"
#include "tests/cpp/capsule/written_capsules.h"
#include "tests/cpp/schedule/star.h"

namespace pccl::capsule {
namespace {

using nlohmann::json;
using schedule::CollectiveKind;
using schedule::Schedule;
using testing::capsule_of;
using testing::file_of;
using testing::generated;
using ::testing::HasSubstr;

std::string links_of(const Schedule& schedule) {
    return json::parse(capsule_of(schedule).manifest()).value("links", "all");
}

TEST(CapsuleTest, ManifestHasTheLinks) {
    using enum CollectiveKind;
    EXPECT_EQ(links_of(generated("ring", kAllReduce, 5)), "+1");
    EXPECT_EQ(links_of(schedule::testing::star(3)), "0->1 0->2 1->0 2->0");
    // Thakur, Rabenseifner and Gropp 2005: partners differ in one binary digit.
    EXPECT_EQ(links_of(generated("recursive_halving", kAllReduce, 8)), "^1 ^2 ^4");
    // Each to each, and a pair.
    EXPECT_EQ(links_of(generated("pairwise", kAllToAll, 5)), "all");
    EXPECT_EQ(links_of(generated("ring", kAllReduce, 2)), "all");
    EXPECT_EQ(links_of(generated("ring", kAllReduce, 1)), "all");
}

TEST(CapsuleTest, VeryManyLinksAreCounted) {
    EXPECT_THAT(links_of(generated("binomial", CollectiveKind::kBroadcast, 1024)),
                HasSubstr(" 0->512 "));
    EXPECT_EQ(links_of(schedule::testing::star(2100)), "4198 links");
}

TEST(CapsuleTest, LinksThatAreNotThoseOfTheProgramsAreRefused) {
    const VerifiedCapsule ring = capsule_of(generated("ring", CollectiveKind::kAllReduce, 4));
    EXPECT_THAT(why_no_capsule(with(ring, "links", "+2")), HasSubstr("at \"links\""));
    EXPECT_THAT(why_no_capsule(with(ring, "links", 1)), HasSubstr("at \"links\""));
    const std::string programs = program_bytes(ring.schedule());
    EXPECT_THAT(why_no_capsule(file_of(ring.manifest(), programs, 1)),
                HasSubstr("its manifest differs"));
    EXPECT_THAT(why_no_capsule(file_of(ring.manifest(), programs, 4)),
                HasSubstr("no version from 1 to 3"));
    EXPECT_THAT(why_no_capsule(file_of(ring.manifest(), programs, 0)),
                HasSubstr("no version from 1 to 3"));
    const VerifiedCapsule pairs = capsule_of(generated("pairwise", CollectiveKind::kAllToAll, 4));
    EXPECT_THAT(why_no_capsule(file_of(pairs.manifest(), program_bytes(pairs.schedule()), 2)),
                HasSubstr("not in the canonical form"));
    EXPECT_THAT(why_no_capsule(with(pairs, "links", "+1 +2 -1")),
                HasSubstr("its manifest differs"));
}

}  // namespace
}  // namespace pccl::capsule
