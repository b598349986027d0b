// SPDX-License-Identifier: Apache-2.0

// What becomes of the audit log where the disk is full, as a limit on the size of files has it.
#include "csrc/cluster/audit_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "csrc/base/text/text.h"

namespace pccl::cluster {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::string_view kEvent = R"({"event":"begin","text":"0123456789012345678901234567890"})";

/// Files of this process get no longer than that, until it ends.
class SizeLimit {
   public:
    explicit SizeLimit(rlim_t bytes) {
        std::signal(SIGXFSZ, SIG_IGN);
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{bytes, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    SizeLimit(const SizeLimit&) = delete;
    SizeLimit& operator=(const SizeLimit&) = delete;
    ~SizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

   private:
    rlimit before_{};
};

class AuditLogTest : public ::testing::Test {
   protected:
    AuditLogTest() { std::filesystem::remove(path_); }
    ~AuditLogTest() override { std::filesystem::remove(path_); }

    [[nodiscard]] AuditLog open() const { return AuditLog::open(path_).value(); }
    [[nodiscard]] bool can_reserve() const {
        const UniqueFd file(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
        return ::fallocate(file.get(), FALLOC_FL_KEEP_SIZE, 0, 4096) == 0;
    }
    [[nodiscard]] std::uintmax_t size() const { return std::filesystem::file_size(path_); }
    /// The events in the file; each line must be one.
    [[nodiscard]] std::vector<nlohmann::json> events() const {
        std::ifstream file(path_);
        std::vector<nlohmann::json> found;
        for (std::string line; std::getline(file, line);)
            found.push_back(nlohmann::json::parse(line));
        return found;
    }

    const std::string path_ =
        concat(::testing::TempDir(), "pccl_audit_log_test_", ::getpid(), ".jsonl");
};

TEST_F(AuditLogTest, LeavesNoHalfALineWhereTheDiskIsFull) {
    AuditLog log = open();
    ASSERT_TRUE(log.add(kEvent).is_ok());
    const auto before = size();
    {
        const SizeLimit full(before + 20);
        EXPECT_THAT(log.add(kEvent).message(), HasSubstr("cannot write to the audit log"));
    }
    EXPECT_EQ(size(), before);
    EXPECT_THAT(log.lines(), SizeIs(1));  // what was not written was not begun
    EXPECT_TRUE(log.add(kEvent).is_ok());
    EXPECT_THAT(events(), SizeIs(2));
}

TEST_F(AuditLogTest, KeepsWhatWasDoneUntilItCanBeWritten) {
    AuditLog log = open();
    ASSERT_TRUE(log.add(kEvent).is_ok());
    {
        const SizeLimit full(size() + 20);
        EXPECT_THAT(log.add_done(R"({"event":"end"})").message(), HasSubstr("lacks this change"));
        EXPECT_FALSE(log.add(kEvent).is_ok());  // nothing new before it
        EXPECT_THAT(log.lines(), SizeIs(2));
    }
    EXPECT_TRUE(log.add(kEvent).is_ok());
    const auto found = events();
    ASSERT_THAT(found, SizeIs(3));
    EXPECT_EQ(found[1]["event"], "end");
}

TEST_F(AuditLogTest, WritesWhatWasDoneWhenItEndsAtTheLatest) {
    {
        AuditLog log = open();
        ASSERT_TRUE(log.add(kEvent).is_ok());
        const SizeLimit full(size() + 20);
        EXPECT_FALSE(log.add_done(R"({"event":"end"})").is_ok());
        const AuditLog moved = std::move(log);
        ::setrlimit(RLIMIT_FSIZE, std::array{rlimit{RLIM_INFINITY, RLIM_INFINITY}}.data());
    }
    EXPECT_THAT(events(), SizeIs(2));
}

TEST_F(AuditLogTest, EndsALineThatSomebodyElseHasCutShort) {
    ASSERT_TRUE(open().add(kEvent).is_ok());
    std::ofstream(path_, std::ios::app) << R"({"event":"beg)";
    ASSERT_TRUE(open().add(kEvent).is_ok());
    std::ifstream file(path_);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    ASSERT_THAT(lines, SizeIs(3));
    EXPECT_TRUE(nlohmann::json::accept(lines[2]));
}

TEST_F(AuditLogTest, SetsRoomAsideForWhatIsToFollow) {
    AuditLog log = open();
    if (!can_reserve()) GTEST_SKIP() << "the file system reserves nothing";
    ASSERT_TRUE(log.add(kEvent, std::size_t{1} << 16U).is_ok());
    struct stat facts {};
    ASSERT_EQ(::stat(path_.c_str(), &facts), 0);
    EXPECT_GE(facts.st_blocks * 512, 1 << 16U);
    EXPECT_LT(facts.st_size, 200);
    EXPECT_THAT(events(), SizeIs(1));
}

TEST_F(AuditLogTest, WaitsForNobodyWhoKeepsItLocked) {
    AuditLog log = open();
    const UniqueFd other(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
    EXPECT_THAT(log.add(kEvent).message(), HasSubstr("another process has it locked"));
    ASSERT_EQ(::flock(other.get(), LOCK_UN), 0);
    EXPECT_TRUE(log.add(kEvent).is_ok());
}

TEST_F(AuditLogTest, RefusesWhatIsNoFile) {
    ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    EXPECT_EQ(AuditLog::open(path_).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pccl::cluster
