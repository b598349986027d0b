// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/memory_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "csrc/base/scope_exit.h"

namespace pccl::sys {
namespace {

TEST(MemoryFileTest, HasItsSizeForGood) {
    const auto file = make_memory_file("pccl-test", 1 << 20);
    ASSERT_TRUE(file.is_ok()) << file.status().to_string();
    struct stat facts {};
    ASSERT_EQ(::fstat(file->get(), &facts), 0);
    EXPECT_EQ(facts.st_size, 1 << 20);
    EXPECT_NE(::ftruncate(file->get(), 0), 0);
    EXPECT_NE(::ftruncate(file->get(), 1 << 21), 0);
}

TEST(MemoryFileTest, NamesTheLimitOfFilesAndSurvivesIt) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const ScopeExit restore([&before] { ::setrlimit(RLIMIT_FSIZE, &before); });
    rlimit small = before;
    small.rlim_cur = 1 << 20;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    EXPECT_TRUE(make_memory_file("pccl-test", 1 << 20).is_ok());
    const Status status = make_memory_file("pccl-test", (1 << 20) + 1).status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), testing::HasSubstr("1048576 bytes at most (ulimit -f)"));
    EXPECT_THAT(status.message(), testing::HasSubstr("1048577"));
}

TEST(MemoryFileTest, PagesPreferANumaNode) {
    constexpr std::size_t kBytes = 1 << 20;
    const auto file = make_memory_file("pccl-test", kBytes);
    ASSERT_TRUE(file.is_ok());
    prefer_numa_node(*file, kBytes, -1);    // unknown
    prefer_numa_node(*file, kBytes, 1000);  // of no machine
    prefer_numa_node(*file, kBytes, 0);
    void* const memory =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0);
    ASSERT_NE(memory, MAP_FAILED);
    int mode = -1;
    std::uint64_t nodes = 0;
    const bool is_known =
        ::syscall(SYS_get_mempolicy, &mode, &nodes, 64UL, memory, MPOL_F_ADDR) == 0;
    *static_cast<char*>(memory) = 1;
    ::munmap(memory, kBytes);
    if (!is_known || mode == MPOL_DEFAULT)
        GTEST_SKIP() << "the kernel or a filter refuses memory policies";
    EXPECT_EQ(mode, MPOL_PREFERRED);
    EXPECT_EQ(nodes, 1U);
}

}  // namespace
}  // namespace pccl::sys
