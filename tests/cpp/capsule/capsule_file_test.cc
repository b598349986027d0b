// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/capsule_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "csrc/base/text/digest.h"
#include "csrc/capsule/limits.h"
#include "csrc/capsule/program_bytes.h"
#include "tests/cpp/capsule/capsule_files.h"
#include "tests/cpp/capsule/written_capsules.h"
#include "tests/cpp/schedule/star.h"

namespace pccl::capsule {
namespace {

using nlohmann::json;
using schedule::Schedule;
using schedule::testing::star;
using testing::capsule_of;
using ::testing::ElementsAre;
using testing::file_of;
using testing::generated;
using ::testing::HasSubstr;
using ::testing::StartsWith;

bool is_refused(std::string bytes) {
    const auto file = CapsuleFile::parse(std::move(bytes));
    return !file.is_ok() || !file->proven().is_ok();
}

TEST(CapsuleFileTest, ProgramsForSeveralNumbersOfRanksComeBackEqual) {
    const CapsuleFile made = rings({8, 2, 4, 3});
    EXPECT_THAT(made.bytes(), StartsWith("pccl-capsule 3 "));
    const CapsuleFile read = CapsuleFile::parse(made.bytes()).value();
    EXPECT_THAT(read.ranks(), ElementsAre(2, 3, 4, 8));
    EXPECT_EQ(read.bytes(), made.bytes());
    EXPECT_EQ(read.digest(), made.digest());
    EXPECT_EQ(read.manifest(), made.manifest());
    for (const int ranks : read.ranks())
        EXPECT_EQ(read.for_ranks(ranks)->bytes(), ring_of(ranks).bytes());
    EXPECT_EQ(read.proven()->bytes(), made.bytes());
}

TEST(CapsuleFileTest, TheSameWhateverTheOrderInWhichTheyWereGiven) {
    EXPECT_EQ(rings({4, 2, 3}).digest(), rings({2, 3, 4}).digest());
    EXPECT_NE(rings({2, 3}).digest(), rings({2, 4}).digest());
}

TEST(CapsuleFileTest, OfOneNumberOfRanksItIsTheCapsulesBytes) {
    const VerifiedCapsule ring = ring_of(4);
    EXPECT_EQ(rings({4}).bytes(), ring.bytes());
    EXPECT_EQ(rings({4}).digest(), ring.digest());
    const CapsuleFile read = CapsuleFile::parse(ring.bytes()).value();
    EXPECT_THAT(read.ranks(), ElementsAre(4));
    EXPECT_EQ(read.manifest(), ring.manifest());
    EXPECT_EQ(read.only()->schedule(), ring.schedule());
    EXPECT_EQ(read.only()->file_digest(), ring.digest());
}

TEST(CapsuleFileTest, GroupsIdentifyAProgramByTheDigestOfItsFile) {
    const CapsuleFile file = rings({2, 3});
    const VerifiedCapsule part = file.for_ranks(3).value();
    EXPECT_EQ(part.file_digest(), file.digest());
    EXPECT_EQ(part.digest(), ring_of(3).digest());
    EXPECT_EQ(hex_digits(part.source()->digest), sys::to_hex(file.digest()).substr(0, 16));
    EXPECT_EQ(CapsuleFile(part).digest(), ring_of(3).digest());
    EXPECT_EQ(CapsuleFile(part).only()->file_digest(), ring_of(3).digest());
}

TEST(CapsuleFileTest, OnlyTheRequestedProgramIsProven) {
    Schedule wrong = star(3);
    wrong.programs[0].lanes[0].pop_back();
    const CapsuleFile right = CapsuleFile::of({capsule_of(star(2)), capsule_of(star(3))}).value();
    const std::string inside = capsule_of(star(2)).bytes() +
                               file_of(capsule_of(star(3)).manifest(), program_bytes(wrong), 2);
    const CapsuleFile file = CapsuleFile::parse(file_of(right.manifest(), inside, 3)).value();
    EXPECT_TRUE(file.for_ranks(2).is_ok());
    EXPECT_THAT(file.for_ranks(3).status().message(),
                StartsWith("for 3 ranks: rank 2 lane 0 step 1"));
    EXPECT_THAT(why_not(file.proven()), StartsWith("for 3 ranks: rank 2 lane 0 step 1"));
}

// A manifest of three ranks before the programs of four.
TEST(CapsuleFileTest, AProgramForOtherRanksThanInItsManifestIsRefused) {
    const std::string lie = file_of(ring_of(3).manifest(), program_bytes(ring_of(4).schedule()), 2);
    const CapsuleFile file = CapsuleFile::parse(around({ring_of(2).bytes(), lie}, "2..3")).value();
    EXPECT_THAT(file.for_ranks(3).status().message(), StartsWith("for 3 ranks: "));
    EXPECT_FALSE(file.proven().is_ok());
}

TEST(CapsuleFileTest, WhatIsInsideIsNeitherAFileOfSeveralNorSignedNorTruncated) {
    const std::string two = ring_of(2).bytes();
    const std::string three = ring_of(3).bytes();
    EXPECT_THAT(why_not(around({two, rings({3, 4}).bytes()}, "2..4")),
                HasSubstr("is for several numbers of ranks itself"));
    EXPECT_THAT(VerifiedCapsule::parse(rings({3, 4}).bytes()).status().message(),
                HasSubstr("several numbers of ranks"));
    const std::string signed_two = CapsuleFile(ring_of(2)).signed_with({}).signed_bytes();
    EXPECT_THAT(why_not(around({signed_two, three}, "2..3")), HasSubstr("this is no capsule"));
    EXPECT_THAT(why_not(around({two, three.substr(0, three.size() - 1)}, "2..3")),
                HasSubstr("it is truncated"));
    EXPECT_THAT(why_not(around({two, three, "\n"}, "2..3")), HasSubstr("this is no capsule"));
}

TEST(CapsuleFileTest, ProgramsOfUnlikeDescriptionsAreRefused) {
    const auto refusal = [](const CapsuleDescription& description, const Schedule& schedule) {
        const VerifiedCapsule other = VerifiedCapsule::make(description, schedule).value();
        return why_not(CapsuleFile::of({ring_of(2), other}));
    };
    const Schedule ring = generated("ring", schedule::CollectiveKind::kAllReduce, 3);
    EXPECT_EQ(refusal({.name = "other"}, ring),
              "capsule mine: its capsules for 2 and 3 ranks differ at \"name\"");
    EXPECT_THAT(refusal({.name = "mine", .author = "Ada"}, ring), HasSubstr("at \"author\""));
    EXPECT_THAT(refusal({.name = "mine", .licence = "MIT"}, ring), HasSubstr("at \"licence\""));
    EXPECT_THAT(refusal({.name = "mine", .note = "n"}, ring), HasSubstr("at \"note\""));
    EXPECT_THAT(refusal({.name = "mine", .sizes = {.least = 1}}, ring), HasSubstr("at \"sizes\""));
    EXPECT_THAT(refusal({.name = "mine", .protocol = schedule::MessageProtocol::kLL}, ring),
                HasSubstr("at \"protocol\""));
    EXPECT_THAT(
        refusal({.name = "mine"}, generated("ring", schedule::CollectiveKind::kAllGather, 3)),
        HasSubstr("at \"collective\""));
    EXPECT_THAT(why_not(CapsuleFile::of({})), HasSubstr("a capsule at least"));
    EXPECT_THAT(why_not(CapsuleFile::of({ring_of(2), ring_of(2)})),
                HasSubstr("a capsule for 2 ranks follows one for 2"));
}

TEST(CapsuleFileTest, EveryTruncationAndEveryFlippedBitIsRefused) {
    const std::string bytes =
        CapsuleFile::of({capsule_of(star(2)), capsule_of(star(3))}).value().bytes();
    for (std::size_t length = 0; length < bytes.size(); ++length)
        EXPECT_TRUE(is_refused(bytes.substr(0, length)));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        std::string damaged = bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ 1);
        EXPECT_TRUE(is_refused(damaged)) << "byte " << i;
    }
    EXPECT_THAT(why_not(bytes + "x"), HasSubstr("something follows"));
}

TEST(CapsuleFileTest, IsWrittenInOneWay) {
    const CapsuleFile file = rings({2, 3});
    const std::string inside = ring_of(2).bytes() + ring_of(3).bytes();
    EXPECT_THAT(why_not(file_of(file.manifest() + " ", inside, 3)),
                HasSubstr("its manifest differs"));
    std::string bytes = concat("pccl-capsule 3 0", file.manifest().size(), " ", inside.size(), "\n",
                               file.manifest(), inside);
    const sys::Digest digest = sys::sha256(bytes);
    bytes.append(reinterpret_cast<const char*>(digest.data()), digest.size());
    EXPECT_THAT(why_not(bytes), HasSubstr("not in the canonical form"));
}

TEST(CapsuleFileTest, HugeClaimsAreRefusedAtOnce) {
    json manifest = json::parse(ring_of(3).manifest());
    manifest["ranks"] = 1'000'000'000;
    const std::string many = file_of(manifest.dump(1) + "\n", "", 2);
    EXPECT_THAT(why_not(around({ring_of(2).bytes(), many}, "2 1000000000")),
                HasSubstr("ranks is 1000000000"));
    EXPECT_THAT(why_not("pccl-capsule 3 1000000 99999999999\n"), HasSubstr("lacks the lengths"));
    EXPECT_THAT(why_not(around({"pccl-capsule 1 1000000 33554432\n"}, "2")),
                HasSubstr("it is truncated"));
}

TEST(CapsuleFileTest, HasAtMostSoManyNumbersOfRanks) {
    json manifest = json::parse(ring_of(3).manifest());
    std::vector<std::string> files;
    for (std::size_t ranks = 2; files.size() <= kMostNumbersOfRanks; ++ranks) {
        manifest["ranks"] = ranks;
        files.push_back(file_of(manifest.dump(1) + "\n", "", 2));
    }
    EXPECT_THAT(why_not(around(files, "2..1026")), HasSubstr("more than 1024 numbers of ranks"));
}

TEST(CapsuleFileTest, ASignatureIsOfAllOfIt) {
    const CapsuleFile file = rings({2, 3});
    const CapsuleFile read = CapsuleFile::parse(file.signed_with({}).signed_bytes()).value();
    ASSERT_TRUE(read.seal().has_value());
    EXPECT_EQ(read.bytes(), file.bytes());
    EXPECT_EQ(read.digest(), file.digest());
    EXPECT_EQ(read.for_ranks(2)->bytes(), ring_of(2).bytes());
    std::string damaged = file.signed_with({}).signed_bytes();
    damaged[damaged.size() - 2] ^= 1;
    EXPECT_THAT(why_not(damaged), HasSubstr("signature"));
    const std::string other = rings({2, 4}).signed_with({}).signed_bytes();
    EXPECT_THAT(why_not(file.bytes() + other.substr(other.size() - kSealBytes)),
                HasSubstr("not one of these bytes"));
}

TEST(CapsuleFileTest, FilesThatAreNoneAreRefusedWithTheirPath) {
    const auto why = [](const std::string& path) { return why_not(CapsuleFile::read(path)); };
    EXPECT_THAT(why("/nowhere/x.capsule"), HasSubstr("/nowhere/x.capsule: there is no such file"));
    EXPECT_THAT(why("/dev/zero"), HasSubstr("this is no file"));
    EXPECT_THAT(why("/tmp"), HasSubstr("this is no file"));
    const std::string path = ::testing::TempDir() + concat("capsule_", ::getpid());
    std::ofstream(path).close();
    std::filesystem::resize_file(path, 1ULL << 30U);
    EXPECT_THAT(why(path), HasSubstr("has more than the 33554645 bytes that are read"));
    std::ofstream(path, std::ios::trunc) << capsule_of(star(3)).bytes();
    EXPECT_TRUE(CapsuleFile::read(path)->proven().is_ok());
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace pccl::capsule
