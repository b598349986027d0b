// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/capsule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "csrc/base/text/text.h"
#include "csrc/capsule/program_bytes.h"
#include "csrc/capsule/sizes.h"
#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/rotation.h"
#include "tests/cpp/capsule/refusals.h"
#include "tests/cpp/capsule/written_files.h"
#include "tests/cpp/schedule/star.h"

namespace pccl::capsule {
namespace {

using nlohmann::json;
using schedule::CollectiveKind;
using schedule::Program;
using schedule::Schedule;
using schedule::SizeRange;
using schedule::Symmetry;
using testing::capsule_of;
using testing::file_of;
using testing::generated;
using ::testing::HasSubstr;
using testing::one_line_of;

struct Written {
    std::string bytes;
    sys::Digest digest;
};

/// Of a capsule that there is no more, so that its bytes are proven when they are parsed.
Written written(const Schedule& schedule, const char* name = "mine") {
    const Capsule capsule = capsule_of(schedule, name);
    return {capsule.bytes(), capsule.digest()};
}

std::string with(const Capsule& capsule, const char* key, const json& value) {
    json manifest = json::parse(capsule.manifest());
    manifest[key] = value;
    return file_of(manifest.dump(1) + "\n", program_bytes(capsule.schedule()),
                   manifest.contains("links") ? 2 : 1);
}

/// As libraries wrote it that knew the first version alone.
std::string first_version(const Schedule& schedule) {
    const Capsule capsule = capsule_of(schedule);
    json manifest = json::parse(capsule.manifest());
    manifest.erase("links");
    return file_of(manifest.dump(1) + "\n", program_bytes(schedule));
}

std::string links_of(const Schedule& schedule) {
    return json::parse(capsule_of(schedule).manifest()).value("links", "all");
}

std::string why_no_capsule(std::string_view bytes) {
    return one_line_of(Capsule::parse(bytes).status());
}

TEST(CapsuleTest, ComesBackEqualForEveryAlgorithm) {
    for (int kind = 0; kind <= static_cast<int>(CollectiveKind::kAllToAll); ++kind)
        for (const auto& source : schedule::built_in()->of(static_cast<CollectiveKind>(kind)))
            for (const int ranks : {1, 2, 3, 8, 12}) {
                const Schedule made =
                    schedule::generate(*source, schedule::least_shape(*source, ranks)).value();
                const auto [bytes, digest] = written(made, source->name.c_str());
                const auto again = Capsule::parse(bytes);
                ASSERT_TRUE(again.is_ok()) << source->name << again.status().to_string();
                EXPECT_EQ(again->schedule(), made) << source->name << " " << ranks;
                EXPECT_EQ(again->digest(), digest);
                EXPECT_EQ(again->bytes(), bytes);
            }
}

TEST(CapsuleTest, BytesThatAreInUseAreNotProvenAgain) {
    const Schedule star = schedule::testing::star(3);
    const Capsule made = capsule_of(star);
    const Capsule again = Capsule::parse(made.bytes()).value();
    EXPECT_EQ(&again.schedule(), &made.schedule());
    const schedule::SourcePtr source = made.source();
    EXPECT_EQ(source->program(star.shape, 1), star.programs[1]);
}

TEST(CapsuleTest, AGroupUsesWhatItHasLoaded) {
    schedule::SourcePtr loaded;
    const Program* programs = nullptr;
    std::string bytes;
    {
        const Capsule made = capsule_of(generated("ring", CollectiveKind::kAllReduce, 5));
        loaded = made.source();
        programs = made.schedule().programs.data();
        bytes = made.bytes();
    }
    EXPECT_EQ(Capsule::parse(bytes).value().schedule().programs.data(), programs);
}

TEST(CapsuleTest, OtherBytesThanThoseInUseAreProven) {
    const Capsule made = capsule_of(schedule::testing::star(3));
    const std::string lie = with(made, "rounds", 1);
    EXPECT_THAT(why_no_capsule(lie), HasSubstr("rounds"));
    EXPECT_THAT(why_no_capsule(lie), HasSubstr("rounds"));
    std::string changed = made.bytes();
    changed.back() = static_cast<char>(changed.back() ^ 1);
    EXPECT_THAT(why_no_capsule(changed), HasSubstr("digest"));
}

TEST(CapsuleTest, KeepsWhatItsAuthorSays) {
    const Description description{.name = "star3",
                                  .author = "Ada \"of\" Lovelace, \u00c5bo",
                                  .licence = "Apache-2.0",
                                  .note = "first\nsecond",
                                  .sizes = {.least = 1U << 20U}};
    const std::string bytes =
        std::string(Capsule::make(description, schedule::testing::star(3)).value().bytes());
    const Capsule again = Capsule::parse(bytes).value();
    EXPECT_EQ(again.description(), description);
    EXPECT_EQ(again.schedule().name, "star3");
    EXPECT_EQ(json::parse(again.manifest())["sizes"], "1MB..");
}

TEST(CapsuleTest, SaysHowItsMessagesTravelBetweenGpusOnlyWhereItsAuthorDid) {
    const Schedule star = schedule::testing::star(3);
    const Capsule without = capsule_of(star);
    EXPECT_FALSE(json::parse(without.manifest()).contains("protocol"));
    EXPECT_FALSE(without.source()->protocol.has_value());
    using enum schedule::MessageProtocol;
    for (const auto protocol : {kLL, kLL128, kDirect}) {
        const std::string bytes = std::string(
            Capsule::make({.name = "mine", .protocol = protocol}, star).value().bytes());
        const Capsule again = Capsule::parse(bytes).value();
        EXPECT_EQ(json::parse(again.manifest())["protocol"], file_name_of(protocol));
        EXPECT_EQ(again.source()->protocol, protocol);
        EXPECT_EQ(again.bytes(), bytes);
        EXPECT_NE(again.digest(), without.digest());
    }
}

// The star sends all to rank 0, which adds them one by one.
TEST(CapsuleTest, ManifestSaysInWhichOrderContributionsAreAdded) {
    const json manifest = json::parse(capsule_of(schedule::testing::star(4)).manifest());
    EXPECT_EQ(manifest["sums"], json::parse(R"([{"chunks": "0..0", "order": "((0+1)+2)+3"}])"));
    EXPECT_EQ(manifest["rounds"], 2);
    EXPECT_EQ(manifest["bit_identical"], true);
    EXPECT_EQ(manifest["steps"], 12);
    EXPECT_EQ(manifest["buffers"], json::parse(R"({"input": 1, "output": 1, "scratch": 0})"));
}

// Patarasu and Yuan's ring: block b starts at rank b+1 and goes round to rank b.
TEST(CapsuleTest, RingIsSummedAlongTheRing) {
    const Capsule ring = capsule_of(generated("ring", CollectiveKind::kAllReduce, 3));
    const json sums = json::parse(ring.manifest())["sums"];
    ASSERT_EQ(sums.size(), 3U);
    EXPECT_EQ(sums[0]["order"], "(1+2)+0");
    EXPECT_EQ(sums[2]["order"], "(0+1)+2");
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

TEST(CapsuleTest, ManifestSaysAlongWhichLinksRanksSend) {
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

TEST(CapsuleTest, FilesOfTheFirstVersionKeepTheirBytes) {
    const Schedule ring = generated("ring", CollectiveKind::kAllReduce, 4);
    const std::string old = first_version(ring);
    const Capsule read = Capsule::parse(old).value();
    EXPECT_EQ(read.bytes(), old);
    EXPECT_EQ(read.schedule().programs, ring.programs);
    EXPECT_FALSE(json::parse(read.manifest()).contains("links"));
    const Capsule made = capsule_of(ring);
    EXPECT_THAT(made.bytes(), ::testing::StartsWith("pccl-capsule 2 "));
    EXPECT_NE(made.digest(), read.digest());
    // Of capsules that do not need the key nothing changes.
    const Schedule pairs = generated("pairwise", CollectiveKind::kAllToAll, 4);
    EXPECT_EQ(capsule_of(pairs).bytes(), first_version(pairs));
}

TEST(CapsuleTest, LinksThatAreNotThoseOfTheProgramsAreRefused) {
    const Capsule ring = capsule_of(generated("ring", CollectiveKind::kAllReduce, 4));
    EXPECT_THAT(why_no_capsule(with(ring, "links", "+2")), HasSubstr("at \"links\""));
    EXPECT_THAT(why_no_capsule(with(ring, "links", 1)), HasSubstr("at \"links\""));
    const std::string programs = program_bytes(ring.schedule());
    EXPECT_THAT(why_no_capsule(file_of(ring.manifest(), programs, 1)), HasSubstr("something else"));
    EXPECT_THAT(why_no_capsule(file_of(ring.manifest(), programs, 4)),
                HasSubstr("no version from 1 to 3"));
    EXPECT_THAT(why_no_capsule(file_of(ring.manifest(), programs, 0)),
                HasSubstr("no version from 1 to 3"));
    const Capsule pairs = capsule_of(generated("pairwise", CollectiveKind::kAllToAll, 4));
    EXPECT_THAT(why_no_capsule(file_of(pairs.manifest(), program_bytes(pairs.schedule()), 2)),
                HasSubstr("in the one way"));
    EXPECT_THAT(why_no_capsule(with(pairs, "links", "+1 +2 -1")), HasSubstr("something else"));
}

TEST(CapsuleTest, DigestsTellProgramsAndNamesApart) {
    const Schedule ring = generated("ring", CollectiveKind::kAllReduce, 4);
    const Capsule one = capsule_of(ring);
    EXPECT_EQ(one.digest(), capsule_of(ring).digest());
    EXPECT_NE(one.digest(), capsule_of(ring, "other").digest());
    EXPECT_NE(one.digest(), capsule_of(generated("pat", CollectiveKind::kAllReduce, 4)).digest());
}

TEST(CapsuleTest, WrongProgramsAreRefusedWithTheStep) {
    Schedule star = schedule::testing::star(3);
    star.programs[0].lanes[0].pop_back();
    const Status status = Capsule::make({.name = "star"}, star).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("rank 2 lane 0 step 1"));
    // A file of the same programs, whose digest is right.
    const Capsule good = capsule_of(schedule::testing::star(3));
    EXPECT_THAT(why_no_capsule(file_of(good.manifest(), program_bytes(star))),
                HasSubstr("rank 2 lane 0 step 1"));
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

TEST(CapsuleTest, EveryTruncationAndEveryFlippedBitIsRefused) {
    const std::string bytes = capsule_of(schedule::testing::star(3)).bytes();
    for (std::size_t length = 0; length < bytes.size(); ++length)
        EXPECT_FALSE(Capsule::parse(std::string_view(bytes).substr(0, length)).is_ok());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        std::string damaged = bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ 1);
        EXPECT_FALSE(Capsule::parse(damaged).is_ok()) << "byte " << i;
    }
    EXPECT_THAT(why_no_capsule(bytes + "x"), HasSubstr("something follows"));
    EXPECT_THAT(why_no_capsule("<algo/>"), HasSubstr("this is no capsule"));
}

TEST(CapsuleTest, ManifestThatLiesIsRefused) {
    const Capsule capsule = capsule_of(schedule::testing::star(3));
    EXPECT_THAT(why_no_capsule(with(capsule, "rounds", 1)), HasSubstr("at \"rounds\""));
    EXPECT_THAT(why_no_capsule(with(capsule, "extra", 1)), HasSubstr("something else"));
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

TEST(CapsuleTest, HugeClaimsAreRefusedAtOnce) {
    const Capsule capsule = capsule_of(schedule::testing::star(3));
    EXPECT_THAT(why_no_capsule(with(capsule, "ranks", 1'000'000'000)),
                HasSubstr("ranks is 1000000000"));
    EXPECT_THAT(why_no_capsule(with(capsule, "chunks", 2'000'000'000)), HasSubstr("chunks is"));
    EXPECT_THAT(why_no_capsule(with(capsule, "slots", 1'000'000)), HasSubstr("slots is"));
    EXPECT_THAT(why_no_capsule("pccl-capsule 1 1000000 99999999999\n"), HasSubstr("how long"));
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

TEST(CapsuleTest, GivesASourceWithItsSizes) {
    const Capsule capsule = capsule_of(schedule::testing::star(3));
    const auto source = capsule.source();
    EXPECT_EQ(source->name, "mine");
    EXPECT_EQ(source->sizes, SizeRange{});
    EXPECT_EQ(schedule::generate(*source, capsule.schedule().shape).value(), capsule.schedule());
    const auto small = capsule.source(SizeRange{.least = 0, .most = 10});
    EXPECT_TRUE(small->sizes->has(10));
    EXPECT_FALSE(small->sizes->has(11));
    EXPECT_EQ(small->tag(), source->tag());
}

TEST(SizesTest, AreReadAsTheyAreWritten) {
    const auto sizes = [](std::string_view text) { return parse_sizes(text).value(); };
    EXPECT_EQ(sizes("1MB.."), (SizeRange{.least = 1U << 20U}));
    EXPECT_EQ(sizes("..64K"), (SizeRange{.most = 64U << 10U}));
    EXPECT_EQ(sizes("512..2gb"), (SizeRange{.least = 512, .most = 2ULL << 30U}));
    EXPECT_EQ(sizes(".."), SizeRange{});
    EXPECT_FALSE(sizes("by name").has(0));
    for (const char* text : {"1MB..", "..64KB", "512..2GB", "..", "by name", "3..3"})
        EXPECT_EQ(to_text(sizes(text)), text);
    for (const char* wrong :
         {"", "1MB", "2..1", "x..", "..1TB", "1..2..3", "-1..", "99999999999GB.."})
        EXPECT_FALSE(parse_sizes(wrong).is_ok()) << wrong;
}

}  // namespace
}  // namespace pccl::capsule
