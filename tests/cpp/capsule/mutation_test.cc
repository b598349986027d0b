// SPDX-License-Identifier: Apache-2.0

// The verifier finds every small fault in programs that people write: of several lanes, whose steps
// wait for each other. tests/support/kept_capsules.py makes the files.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "csrc/capsule/capsule_file.h"
#include "csrc/capsule/limits.h"
#include "csrc/capsule/msccl/import.h"
#include "csrc/capsule/mscclpp/import.h"
#include "csrc/sys/sysfs/file.h"
#include "tests/cpp/schedule/mutation_report.h"
#include "tests/fakes/places.h"

namespace pccl::capsule {
namespace {

using schedule::testing::Fate;
using schedule::testing::Report;
using schedule::testing::Tally;

std::vector<std::filesystem::path> kept_files() {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(fakes::in_tests("data/capsules")))
        files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
}

Result<VerifiedCapsule> capsule_in(const std::filesystem::path& file) {
    if (file.extension() == ".capsule") {
        PCCL_ASSIGN_OR_RETURN(const CapsuleFile read, CapsuleFile::read(file));
        return read.only();
    }
    PCCL_ASSIGN_OR_RETURN(const std::string text, sys::read_file(file, kMostBytes));
    if (file.extension() == ".xml") return import_msccl(text, file.string());
    return import_mscclpp(text, file.string());
}

class KeptMutationTest : public ::testing::TestWithParam<std::filesystem::path> {
   protected:
    /// Of all together, where none was left out.
    static void TearDownTestSuite() {
        if (files == kept_files().size()) {
            EXPECT_GE(total.of(Fate::kKilled), 2000);
        }
    }
    static inline Tally total;
    static inline std::size_t files = 0;
};

TEST_P(KeptMutationTest, EveryFaultIsFound) {
    const auto capsule = capsule_in(GetParam());
    ASSERT_TRUE(capsule.is_ok()) << capsule.status().message();
    Report report;
    schedule::testing::mutate_and_verify(capsule.value().schedule(), report);
    for (const std::string& survivor : report.survivors) ADD_FAILURE() << survivor;
    EXPECT_GT(report.total().of(Fate::kKilled), 0);
    total += report.total();
    ++files;
}

INSTANTIATE_TEST_SUITE_P(All, KeptMutationTest, ::testing::ValuesIn(kept_files()),
                         [](const auto& file) { return file.param.stem().string(); });

}  // namespace
}  // namespace pccl::capsule
