// SPDX-License-Identifier: Apache-2.0

// How much more memory a process can have: made-up machines in a folder.
#include "csrc/sys/memory_left.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"

namespace pccl::sys {
namespace {

using testing::HasSubstr;

class MemoryLeftTest : public testing::Test {
   protected:
    void SetUp() override {
        write("proc/meminfo",
              "MemTotal: 9000 kB\nMemAvailable:    5000 kB\nSwapFree: 1000 kB\n"
              "CommitLimit: 7000 kB\nCommitted_AS: 4000 kB\n");
    }
    void TearDown() override { std::filesystem::remove_all(root_); }
    void write(const std::string& path, const std::string& text) const {
        const std::filesystem::path whole = root_ / path;
        std::filesystem::create_directories(whole.parent_path());
        std::ofstream(whole) << text;
    }
    [[nodiscard]] MemoryLeft left() const { return memory_left(root_.string()).value(); }

    const std::filesystem::path root_ =
        std::filesystem::path(testing::TempDir()) /
        concat("memory_left_", ::getpid(), "_",
               testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(MemoryLeftTest, IsWhatTheMachineHasWithItsSwap) {
    EXPECT_EQ(left().bytes, 6000 * kKiB);
    EXPECT_THAT(left().bound, HasSubstr("MemAvailable"));
}

TEST_F(MemoryLeftTest, CountsPromisesWhereTheKernelDoes) {
    write("proc/sys/vm/overcommit_memory", "1\n");
    EXPECT_EQ(left().bytes, 6000 * kKiB);
    write("proc/sys/vm/overcommit_memory", "2\n");
    EXPECT_EQ(left().bytes, 3000 * kKiB);
    EXPECT_THAT(left().bound, HasSubstr("CommitLimit"));
}

TEST_F(MemoryLeftTest, IsBoundByEachControlGroupAroundTheProcess) {
    write("proc/self/cgroup", "0::/job/step\n");
    write("sys/fs/cgroup/job/step/memory.max", "max\n");
    write("sys/fs/cgroup/job/step/memory.current", "4096\n");
    EXPECT_EQ(left().bytes, 6000 * kKiB);
    write("sys/fs/cgroup/job/memory.max", std::to_string(900 * kKiB));
    write("sys/fs/cgroup/job/memory.current", std::to_string(800 * kKiB));
    write("sys/fs/cgroup/job/memory.stat",
          concat("anon 1\ninactive_file ", 200 * kKiB, "\nactive_file ", 300 * kKiB, "\n"));
    EXPECT_EQ(left().bytes, (100 + 500 + 1000) * kKiB);
    EXPECT_THAT(left().bound, HasSubstr("/sys/fs/cgroup/job/memory.max"));
}

TEST_F(MemoryLeftTest, SupportsTheFirstVersionOfControlGroups) {
    write("proc/self/cgroup", "4:cpu,memory:/job\n3:devices:/other\n0::/\n");
    write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
    write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1000\n");
    EXPECT_EQ(left().bytes, 6000 * kKiB);
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(50 * kKiB));
    write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(60 * kKiB));
    EXPECT_EQ(left().bytes, 1000 * kKiB) << "the swap is left";
}

TEST_F(MemoryLeftTest, UnreadableBoundsAreIgnored) {
    write("proc/self/cgroup", "\n:\n::\n0:\nmemory\n9:memory:\n0::no slash\n");
    write("sys/fs/cgroup/memory.max", "many\n");
    write("sys/fs/cgroup/memory.current", "-3\n");
    EXPECT_EQ(left().bytes, 6000 * kKiB);
    write("proc/meminfo", "nothing\n");
    EXPECT_EQ(memory_left(root_.string()).status().code(), StatusCode::kUnavailable);
}

TEST(MemoryLeftOfThisMachineTest, IsSome) { EXPECT_GT(memory_left().value().bytes, kMiB); }

}  // namespace
}  // namespace pccl::sys
