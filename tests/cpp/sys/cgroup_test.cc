// SPDX-License-Identifier: Apache-2.0

// CPU quotas as Linux shows them, in cgroups of both versions.
#include "csrc/sys/cgroup.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>

#include <pccl/deadline.h>
#include "tests/cpp/sys/test_files.h"

namespace pccl::sys {
namespace {

class CpuQuotaTest : public FileTest {
   protected:
    void put(const std::string& path, const std::string& text) const {
        const fs::path file = folder_.string() + path;
        fs::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    [[nodiscard]] double quota() const { return cpu_quota(folder_.string()); }
};

TEST_F(CpuQuotaTest, ThereIsNoneWithoutCgroups) { EXPECT_TRUE(std::isinf(quota())); }

TEST_F(CpuQuotaTest, AContainerShowsItsOwnCgroupAsTheRoot) {
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/cpu.max", "250000 100000\n");
    EXPECT_DOUBLE_EQ(quota(), 2.5);
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    EXPECT_TRUE(std::isinf(quota()));
}

TEST_F(CpuQuotaTest, TheLeastOfAllLevelsCounts) {
    put("/proc/self/cgroup", "0::/kubepods.slice/pod7/container\n");
    put("/sys/fs/cgroup/kubepods.slice/cpu.max", "800000 100000\n");
    put("/sys/fs/cgroup/kubepods.slice/pod7/cpu.max", "150000 50000\n");
    put("/sys/fs/cgroup/kubepods.slice/pod7/container/cpu.max", "max 100000\n");
    EXPECT_DOUBLE_EQ(quota(), 3);
}

TEST_F(CpuQuotaTest, VersionOneHasTwoFiles) {
    put("/proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/job\n0::/\n");
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "400000\n");
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
    EXPECT_DOUBLE_EQ(quota(), 4);
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
    EXPECT_TRUE(std::isinf(quota()));
}

TEST_F(CpuQuotaTest, WhatIsNoQuotaIsNone) {
    for (const std::string text : {"", "\n", "0 100000\n", "1e99 1\n", "100000\n", "x y\n"}) {
        put("/proc/self/cgroup", "0::relative\nnonsense\n:\n0::/\n");
        put("/sys/fs/cgroup/cpu.max", text);
        EXPECT_TRUE(std::isinf(quota())) << text;
    }
}

// A hybrid host mounts version 2 beside the controllers of version 1.
TEST_F(CpuQuotaTest, TheKernelTellsWhereHierarchiesAreMounted) {
    put("/proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "41 31 0:38 / /mnt/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n");
    put("/proc/self/cgroup", "4:cpu,cpuacct:/job\n0::/service\n");
    put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "400000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    EXPECT_DOUBLE_EQ(quota(), 4);
    put("/mnt/unified/service/cpu.max", "50000 100000\n");
    EXPECT_DOUBLE_EQ(quota(), 0.5);
}

// Docker with version 1 has no namespace: the path is the host's, the mount is the container's.
TEST_F(CpuQuotaTest, AMountMayBeginAtTheContainersGroup) {
    put("/proc/self/mountinfo",
        "33 31 0:29 /docker/7 /sys/fs/cgroup/cpu ro,nosuid master:11 - cgroup cgroup rw,cpu\n");
    put("/proc/self/cgroup", "4:cpu:/docker/7/inner\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    EXPECT_DOUBLE_EQ(quota(), 2);
    put("/sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "100000\n");
    put("/sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000\n");
    EXPECT_DOUBLE_EQ(quota(), 1);
}

TEST_F(CpuQuotaTest, AGroupOutsideTheNamespaceCountsAsItsRoot) {
    put("/proc/self/cgroup", "0::/../../other\n");
    put("/sys/fs/cgroup/cpu.max", "300000 100000\n");
    EXPECT_DOUBLE_EQ(quota(), 3);
    EXPECT_EQ(CpuGroups::of_process(folder_.string()).folders().size(), 1U);
}

TEST_F(CpuQuotaTest, AChangedQuotaCountsAtOnce) {
    put("/proc/self/cgroup", "0::/job\n");
    const CpuGroups groups = CpuGroups::of_process(folder_.string());
    EXPECT_TRUE(std::isinf(groups.quota()));
    put("/sys/fs/cgroup/job/cpu.max", "150000 100000\n");
    EXPECT_DOUBLE_EQ(groups.quota(), 1.5);
}

TEST_F(CpuQuotaTest, StopsOfAllLevelsCount) {
    put("/proc/self/cgroup", "0::/pod/container\n");
    const CpuGroups groups = CpuGroups::of_process(folder_.string());
    EXPECT_EQ(groups.throttled(), 0U);
    put("/sys/fs/cgroup/pod/cpu.stat", "usage_usec 9\nnr_periods 20\nnr_throttled 7\n");
    EXPECT_EQ(groups.throttled(), 7U);
    put("/sys/fs/cgroup/pod/container/cpu.stat", "nr_throttled 2\nthrottled_usec 1\n");
    EXPECT_EQ(groups.throttled(), 9U);
    put("/sys/fs/cgroup/pod/container/cpu.stat.local", "throttled_usec 30\n");
    EXPECT_EQ(groups.throttled(), 39U) << "groups above the visible ones stop it as well";
}

/// A control group of this host with a quota, below that of the test.
class RealGroup {
   public:
    RealGroup() {
        const CpuGroups groups = CpuGroups::of_process();
        for (const std::string& parent : groups.folders()) {
            folder_ = parent + "/pccl-test-" + std::to_string(::getpid());
            if (::mkdir(folder_.c_str(), 0755) != 0) continue;
            if (put("cpu.max", "20000 100000") ||
                (put("cpu.cfs_period_us", "100000") && put("cpu.cfs_quota_us", "20000")))
                return;
            ::rmdir(folder_.c_str());
        }
        folder_.clear();
    }
    ~RealGroup() {
        if (!folder_.empty()) ::rmdir(folder_.c_str());
    }
    RealGroup(const RealGroup&) = delete;
    RealGroup& operator=(const RealGroup&) = delete;

    [[nodiscard]] bool exists() const { return !folder_.empty(); }
    [[nodiscard]] bool enter() const { return put("cgroup.procs", "0"); }

   private:
    [[nodiscard]] bool put(const std::string& name, const std::string& text) const {
        const int fd = ::open((folder_ + "/" + name).c_str(), O_WRONLY | O_CLOEXEC);
        if (fd < 0) return false;
        const bool is_written =
            ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
        ::close(fd);
        return is_written;
    }
    std::string folder_;
};

/// Computes in a group of a fifth of a core until its quota stops it; returns what is wrong.
int be_stopped_in(const RealGroup& group) {
    if (!group.enter()) return 1;
    const CpuGroups groups = CpuGroups::of_process();
    if (groups.quota() > 0.2) return 2;
    const std::uint64_t before = groups.throttled();
    const Deadline deadline = Deadline::after(std::chrono::seconds(20));
    while (groups.throttled() == before)
        if (deadline.passed()) return 3;
    return 0;
}

TEST(CpuGroupsTest, TheKernelsGroupsShowTheirQuotaAndItsEffect) {
    const RealGroup group;
    if (!group.exists())
        GTEST_SKIP() << "no group with the cpu controller can be made here: run it as root";
    const pid_t child = ::fork();
    if (child == 0) ::_exit(be_stopped_in(group));
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "the child failed at step " << WEXITSTATUS(status);
}

}  // namespace
}  // namespace pccl::sys
