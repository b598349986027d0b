// SPDX-License-Identifier: Apache-2.0

// Programs come back as they were written; malformed ones are refused.
#include "csrc/capsule/program_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "csrc/base/text/text.h"
#include "csrc/capsule/capsule.h"
#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/rotation.h"
#include "tests/cpp/capsule/written_capsules.h"
#include "tests/cpp/schedule/star.h"

namespace pccl::capsule {
namespace {

using nlohmann::json;
using schedule::CollectiveKind;
using schedule::Schedule;
using schedule::Symmetry;
using testing::capsule_of;
using testing::file_of;
using testing::generated;
using ::testing::HasSubstr;

struct Written {
    std::string bytes;
    sys::Digest digest;
};

/// Of a capsule that there is no more, so that its bytes are proven when they are parsed.
Written written(const Schedule& schedule, const char* name = "mine") {
    const VerifiedCapsule capsule = capsule_of(schedule, name);
    return {capsule.bytes(), capsule.digest()};
}

TEST(CapsuleTest, ComesBackEqualForEveryAlgorithm) {
    for (int kind = 0; kind <= static_cast<int>(CollectiveKind::kAllToAll); ++kind)
        for (const auto& source : schedule::built_in()->of(static_cast<CollectiveKind>(kind)))
            for (const int ranks : {1, 2, 3, 8, 12}) {
                const Schedule made =
                    schedule::generate(*source, schedule::least_shape(*source, ranks)).value();
                const auto [bytes, digest] = written(made, source->name.c_str());
                const auto again = VerifiedCapsule::parse(bytes);
                ASSERT_TRUE(again.is_ok()) << source->name << again.status().to_string();
                EXPECT_EQ(again->schedule(), made) << source->name << " " << ranks;
                EXPECT_EQ(again->digest(), digest);
                EXPECT_EQ(again->bytes(), bytes);
            }
}

TEST(CapsuleTest, ProgramsThatRotateAreStoredOnce) {
    const Schedule small = generated("ring", CollectiveKind::kAllReduce, 4);
    const Schedule large = generated("ring", CollectiveKind::kAllReduce, 64);
    EXPECT_EQ(symmetry_of(small), Symmetry::kRotatedChunks);
    EXPECT_EQ(symmetry_of(generated("ring", CollectiveKind::kAllGather, 5)), Symmetry::kRotated);
    EXPECT_EQ(symmetry_of(generated("pairwise", CollectiveKind::kAllToAll, 5)), Symmetry::kRotated);
    EXPECT_EQ(symmetry_of(schedule::testing::star(3)), Symmetry::kNone);
    // 64 ranks with 127 steps each, of which one rank's are stored.
    EXPECT_LT(program_bytes(large).size(), 127U * 10U);
}

TEST(CapsuleTest, APeerThatIsNoRankIsNotTurned) {
    const Schedule ring = generated("ring", CollectiveKind::kAllReduce, 4);
    const std::string programs = program_bytes(ring);
    ASSERT_EQ(ring.programs[0].lanes[0][0].to.peer, 1);
    for (const Rank peer : {4, 2'147'483'647}) {
        Schedule wrong = ring;
        wrong.programs[0].lanes[0][0].to.peer = peer;
        EXPECT_THAT(
            why_no_capsule(file_of(capsule_of(ring).manifest(),
                                   program_bytes(wrong, schedule::Symmetry::kRotatedChunks), 2)),
            HasSubstr(concat("peer ", peer, " is no rank before byte ")));
    }
}

TEST(CapsuleTest, HugeClaimsAreRefusedAtOnce) {
    const VerifiedCapsule capsule = capsule_of(schedule::testing::star(3));
    EXPECT_THAT(why_no_capsule(with(capsule, "ranks", 1'000'000'000)),
                HasSubstr("ranks is 1000000000"));
    EXPECT_THAT(why_no_capsule(with(capsule, "chunks", 2'000'000'000)), HasSubstr("chunks is"));
    EXPECT_THAT(why_no_capsule(with(capsule, "slots", 1'000'000)), HasSubstr("slots is"));
    EXPECT_THAT(why_no_capsule("pccl-capsule 1 1000000 99999999999\n"),
                HasSubstr("lacks the lengths"));
    EXPECT_THAT(why_no_capsule(file_of(std::string(100'000, '['), "")),
                HasSubstr("no JSON object"));
    // A lane count without lanes, and one lane of many steps for 65536 ranks.
    EXPECT_THAT(why_no_capsule(file_of(capsule.manifest(), std::string("\0\0\xff\xff\xff\x7f", 6))),
                HasSubstr("lanes at byte"));
    json wide = json::parse(capsule.manifest());
    wide["ranks"] = 1 << 16;
    const std::string many_steps = std::string("\1\0\1", 3) + "\x80\x08" + std::string(1024, '\0');
    EXPECT_THAT(why_no_capsule(file_of(wide.dump(), many_steps)), HasSubstr("more than 16777216"));
}

}  // namespace
}  // namespace pccl::capsule
