// SPDX-License-Identifier: Apache-2.0

// CPU quotas as Linux shows them, in cgroups of both versions.
#include "csrc/sys/cgroup.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>

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

}  // namespace
}  // namespace pccl::sys
