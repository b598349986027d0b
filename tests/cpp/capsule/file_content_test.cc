// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/file_content.h"

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

/// As libraries wrote it that knew the first version alone.
std::string first_version(const Schedule& schedule) {
    const VerifiedCapsule capsule = capsule_of(schedule);
    json manifest = json::parse(capsule.manifest());
    manifest.erase("links");
    return file_of(manifest.dump(1) + "\n", program_bytes(schedule));
}

TEST(CapsuleTest, FilesOfTheFirstVersionKeepTheirBytes) {
    const Schedule ring = generated("ring", CollectiveKind::kAllReduce, 4);
    const std::string old = first_version(ring);
    const VerifiedCapsule read = VerifiedCapsule::parse(old).value();
    EXPECT_EQ(read.bytes(), old);
    EXPECT_EQ(read.schedule().programs, ring.programs);
    EXPECT_FALSE(json::parse(read.manifest()).contains("links"));
    const VerifiedCapsule made = capsule_of(ring);
    EXPECT_THAT(made.bytes(), ::testing::StartsWith("pccl-capsule 2 "));
    EXPECT_NE(made.digest(), read.digest());
    // Of capsules that do not need the key nothing changes.
    const Schedule pairs = generated("pairwise", CollectiveKind::kAllToAll, 4);
    EXPECT_EQ(capsule_of(pairs).bytes(), first_version(pairs));
}

TEST(CapsuleTest, EveryTruncationAndEveryFlippedBitIsRefused) {
    const std::string bytes = capsule_of(schedule::testing::star(3)).bytes();
    for (std::size_t length = 0; length < bytes.size(); ++length)
        EXPECT_FALSE(VerifiedCapsule::parse(std::string_view(bytes).substr(0, length)).is_ok());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        std::string damaged = bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ 1);
        EXPECT_FALSE(VerifiedCapsule::parse(damaged).is_ok()) << "byte " << i;
    }
    EXPECT_THAT(why_no_capsule(bytes + "x"), HasSubstr("something follows"));
    EXPECT_THAT(why_no_capsule("<algo/>"), HasSubstr("this is no capsule"));
}

}  // namespace
}  // namespace pccl::capsule
