// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "csrc/cluster/audit_log.h"
#include "csrc/cluster/cluster_context.h"
#include "tests/cpp/cluster/opened_cluster.h"

namespace pccl::cluster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(ClusterTest, KeepsAnAuditLogThatOthersCannotWrite) {
    const auto path = std::filesystem::path(::testing::TempDir()) / "pccl_audit_test.jsonl";
    std::filesystem::remove(path);
    Description of = description();
    of.audit_file = path;
    of.switches[0].management.key_file = "/secret/key";
    auto cluster = open(of);
    ASSERT_TRUE(cluster->switch_phase("ring", soon()).is_ok());
    std::ifstream file(path);
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(file, line);) {
        EXPECT_THAT(line, Not(HasSubstr("secret")));
        lines.push_back(nlohmann::json::parse(line));
    }
    ASSERT_THAT(lines, SizeIs(2));
    EXPECT_EQ(lines[0]["event"], "begin");
    EXPECT_EQ(lines[0]["switches"][0]["to"][0], (std::vector<int>{1, 2}));
    EXPECT_EQ(lines[1]["outcome"], "switched");
    EXPECT_EQ(lines[1]["switches"][0]["requests"][0]["operation"], "lock");
    EXPECT_THAT(cluster->audit(), SizeIs(2));
    struct stat facts {};
    ASSERT_EQ(::stat(path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777U, 0600U);
    ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
    EXPECT_THAT(ClusterContext::open(of).status().message(),
                HasSubstr("by other users (mode 0666)"));
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace pccl::cluster
