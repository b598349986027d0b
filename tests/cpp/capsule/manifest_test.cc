// SPDX-License-Identifier: Apache-2.0

// The manifest of a capsule, and manifests that are refused.
#include "csrc/capsule/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "csrc/capsule/capsule.h"
#include "csrc/capsule/sizes.h"
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

TEST(CapsuleTest, KeepsTheTextsOfItsAuthor) {
    const CapsuleDescription description{.name = "star3",
                                         .author = "Ada \"of\" Lovelace, \u00c5bo",
                                         .licence = "Apache-2.0",
                                         .note = "first\nsecond",
                                         .sizes = {.least = 1U << 20U}};
    const std::string bytes =
        std::string(VerifiedCapsule::make(description, schedule::testing::star(3)).value().bytes());
    const VerifiedCapsule again = VerifiedCapsule::parse(bytes).value();
    EXPECT_EQ(again.description(), description);
    EXPECT_EQ(again.schedule().name, "star3");
    EXPECT_EQ(json::parse(again.manifest())["sizes"], "1MB..");
}

TEST(CapsuleTest, HasAProtocolOnlyWhereItsAuthorSetIt) {
    const Schedule star = schedule::testing::star(3);
    const VerifiedCapsule without = capsule_of(star);
    EXPECT_FALSE(json::parse(without.manifest()).contains("protocol"));
    EXPECT_FALSE(without.source()->protocol.has_value());
    using enum schedule::MessageProtocol;
    for (const auto protocol : {kLL, kLL128, kDirect}) {
        const std::string bytes = std::string(
            VerifiedCapsule::make({.name = "mine", .protocol = protocol}, star).value().bytes());
        const VerifiedCapsule again = VerifiedCapsule::parse(bytes).value();
        EXPECT_EQ(json::parse(again.manifest())["protocol"], file_name_of(protocol));
        EXPECT_EQ(again.source()->protocol, protocol);
        EXPECT_EQ(again.bytes(), bytes);
        EXPECT_NE(again.digest(), without.digest());
    }
}

// The star sends all to rank 0, which adds them one by one.
TEST(CapsuleTest, ManifestHasTheOrderOfAdditions) {
    const json manifest = json::parse(capsule_of(schedule::testing::star(4)).manifest());
    EXPECT_EQ(manifest["sums"], json::parse(R"([{"chunks": "0..0", "order": "((0+1)+2)+3"}])"));
    EXPECT_EQ(manifest["rounds"], 2);
    EXPECT_EQ(manifest["bit_identical"], true);
    EXPECT_EQ(manifest["steps"], 12);
    EXPECT_EQ(manifest["buffers"], json::parse(R"({"input": 1, "output": 1, "scratch": 0})"));
}

// Patarasu and Yuan's ring: block b starts at rank b+1 and goes round to rank b.
TEST(CapsuleTest, RingIsSummedAlongTheRing) {
    const VerifiedCapsule ring = capsule_of(generated("ring", CollectiveKind::kAllReduce, 3));
    const json sums = json::parse(ring.manifest())["sums"];
    ASSERT_EQ(sums.size(), 3U);
    EXPECT_EQ(sums[0]["order"], "(1+2)+0");
    EXPECT_EQ(sums[2]["order"], "(0+1)+2");
}

TEST(CapsuleTest, ManifestThatLiesIsRefused) {
    const VerifiedCapsule capsule = capsule_of(schedule::testing::star(3));
    EXPECT_THAT(why_no_capsule(with(capsule, "rounds", 1)), HasSubstr("at \"rounds\""));
    EXPECT_THAT(why_no_capsule(with(capsule, "extra", 1)), HasSubstr("its manifest differs"));
    EXPECT_THAT(why_no_capsule(with(capsule, "root", 7)), HasSubstr("root is 7"));
    EXPECT_THAT(why_no_capsule(with(capsule, "collective", "all_dance")), HasSubstr("all_dance"));
    EXPECT_THAT(why_no_capsule(with(capsule, "sizes", "many")), HasSubstr("no range of sizes"));
    EXPECT_THAT(why_no_capsule(with(capsule, "chunks", -1)), HasSubstr("\"chunks\""));
    EXPECT_THAT(why_no_capsule(with(capsule, "protocol", "LL")),
                HasSubstr("\"protocol\" is 'LL'; there are ll, ll128, direct"));
    EXPECT_THAT(why_no_capsule(with(capsule, "protocol", "")), HasSubstr("\"protocol\" is ''"));
    EXPECT_THAT(why_no_capsule(with(capsule, "protocol", 1)), HasSubstr("\"protocol\" is no text"));
    EXPECT_THAT(why_no_capsule(with(capsule, "name", "Bad name")),
                HasSubstr("no name of a capsule"));
    EXPECT_THAT(why_no_capsule(file_of("[1]", "")), HasSubstr("no JSON object"));
    EXPECT_THAT(why_no_capsule(file_of("{}", "")), HasSubstr("has no"));
}

}  // namespace
}  // namespace pccl::capsule
