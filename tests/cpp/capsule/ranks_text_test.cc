// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "csrc/capsule/capsule_file.h"
#include "csrc/capsule/sizes.h"
#include "tests/cpp/capsule/capsule_files.h"
#include "tests/cpp/capsule/written_capsules.h"
#include "tests/cpp/schedule/star.h"

namespace pccl::capsule {
namespace {

using nlohmann::json;
using schedule::testing::star;
using testing::capsule_of;
using ::testing::ElementsAre;
using testing::file_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CapsuleFileTest, ManifestHasTheNumberOfRanks) {
    const json manifest = json::parse(rings({2, 3, 4, 8}).manifest());
    EXPECT_EQ(manifest, json::parse(R"({"author": "", "collective": "all_reduce", "licence": "",
        "name": "mine", "note": "", "ranks": "2..4 8", "root": 0, "sizes": ".."})"));
    EXPECT_EQ(ranks_text({1, 2, 4, 6, 7}), "1..2 4 6..7");
    EXPECT_EQ(ranks_text({3}), "3");
}

TEST(CapsuleFileTest, NamesTheNumbersOfRanksWhereThereIsNoProgram) {
    const CapsuleFile file = rings({2, 3, 8});
    EXPECT_FALSE(file.has(4));
    EXPECT_TRUE(file.has(8));
    EXPECT_EQ(file.for_ranks(4).status().message(), "capsule mine is for 2..3 8 ranks, not for 4");
    EXPECT_EQ(file.only().status().message(),
              "capsule mine is for 2..3 8 ranks: for_ranks(2) is for one of them");
}

TEST(CapsuleFileTest, ListsOfRanksThatAreNotThoseOfTheProgramsAreRefused) {
    const std::string two = ring_of(2).bytes();
    const std::string three = ring_of(3).bytes();
    ASSERT_TRUE(CapsuleFile::parse(around({two, three}, "2..3")).is_ok());
    EXPECT_THAT(why_not(around({two, three}, "2..4")), HasSubstr("at \"ranks\""));
    EXPECT_THAT(why_not(around({two, three}, "2 3")), HasSubstr("at \"ranks\""));
    EXPECT_THAT(why_not(around({two, two}, "2")),
                HasSubstr("a capsule for 2 ranks follows one for 2; numbers of ranks ascend"));
    EXPECT_THAT(why_not(around({three, two}, "2..3")),
                HasSubstr("a capsule for 2 ranks follows one for 3"));
    EXPECT_THAT(why_not(around({two}, "2")), HasSubstr("has capsules for 1"));
    EXPECT_THAT(why_not(around({}, "")), HasSubstr("has capsules for 0"));
}

TEST(CapsuleFileTest, NumbersOfRanksAreReadBeforeTheProof) {
    const std::string path = ::testing::TempDir() + concat("stated_ranks_", ::getpid());
    std::ofstream(path, std::ios::binary) << file_of(capsule_of(star(3)).manifest(), "no programs");
    const CapsuleFile file = CapsuleFile::read(path).value();
    EXPECT_THAT(file.ranks(), ElementsAre(3));
    EXPECT_THAT(file.only().status().message(), StartsWith(path + ": "));
    EXPECT_THAT(file.for_ranks(4).status().message(), StartsWith(path + ": "));
    std::ofstream(path, std::ios::binary) << "no capsule";
    EXPECT_THAT(why_not(CapsuleFile::read(path)), StartsWith(path + ": this is no capsule"));
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace pccl::capsule
