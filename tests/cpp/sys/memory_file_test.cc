// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/memory_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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

}  // namespace
}  // namespace pccl::sys
