// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/sysfs/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "csrc/base/scope_exit.h"
#include "tests/cpp/sys/test_files.h"

namespace pccl::sys {
namespace {

TEST_F(FileTest, IsReadAsItWasWritten) {
    const std::string path = folder_ / "text";
    ASSERT_TRUE(write_file(path, "one").is_ok());
    ASSERT_TRUE(write_file(path, "two and more").is_ok());
    const auto text = read_file(path, 100);
    ASSERT_TRUE(text.is_ok());
    EXPECT_EQ(*text, "two and more");
    EXPECT_EQ(entries(), 1U);
    EXPECT_EQ(read_file(path, 3).status().code(), StatusCode::kResourceExhausted);
}

TEST_F(FileTest, StaysAsItWasWhereThereIsNoRoom) {
    const std::string path = folder_ / "text";
    ASSERT_TRUE(write_file(path, "before").is_ok());
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
    Status written;
    {
        ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
        const ScopeExit lifted([&] { ::setrlimit(RLIMIT_FSIZE, &limit); });
        written = write_file(path, "after");
    }
    std::signal(SIGXFSZ, handler);
    EXPECT_FALSE(written.is_ok());
    EXPECT_NE(written.message().find("File too large"), std::string::npos) << written.message();
    EXPECT_EQ(*read_file(path, 100), "before");
    EXPECT_EQ(entries(), 1U) << "a draft is left";
}

TEST_F(FileTest, WritesThroughNoLinkThatSomebodyHasLaid) {
    const fs::path path = folder_ / "text";
    const fs::path precious = folder_ / "precious";
    ASSERT_TRUE(write_file(precious, "precious").is_ok());
    fs::create_symlink(precious, path);
    for (int i = 0; i < 1000; ++i) {
        const auto draft = path.string() + "." + std::to_string(::getpid());
        fs::create_symlink(precious, draft + "." + std::to_string(i) + ".part");
    }
    fs::create_symlink(precious, path.string() + "." + std::to_string(::getpid()) + ".part");
    ASSERT_TRUE(write_file(path, "text").is_ok());
    EXPECT_EQ(*read_file(precious, 100), "precious");
    EXPECT_EQ(*read_file(path, 100), "text");
    EXPECT_FALSE(fs::is_symlink(path));
}

TEST_F(FileTest, ThreadsThatWriteAtOnceLeaveItWhole) {
    const std::string path = folder_ / "text";
    std::vector<std::thread> threads;
    for (char letter = 'a'; letter < 'e'; ++letter)
        threads.emplace_back([&, letter] {
            for (int i = 0; i < 50; ++i)
                EXPECT_TRUE(write_file(path, std::string(100'000, letter)).is_ok());
        });
    for (std::thread& thread : threads) thread.join();
    const auto text = read_file(path, 200'000);
    ASSERT_TRUE(text.is_ok());
    EXPECT_EQ(*text, std::string(100'000, text->front()));
    EXPECT_EQ(entries(), 1U);
}

TEST_F(FileTest, NamesTheReasonWhereItCannotBeReplaced) {
    fs::create_directory(folder_ / "text");
    const Status written = write_file(folder_ / "text", "after");
    EXPECT_NE(written.message().find("directory"), std::string::npos) << written.message();
    EXPECT_EQ(entries(), 1U) << "a draft is left";
}

TEST_F(FileTest, WhetherItCouldBeWrittenIsTriedWithoutATrace) {
    EXPECT_TRUE(check_writable(folder_ / "text").is_ok());
    ASSERT_TRUE(write_file(folder_ / "text", "text").is_ok());
    EXPECT_TRUE(check_writable(folder_ / "text").is_ok());
    EXPECT_EQ(*read_file(folder_ / "text", 100), "text");
    EXPECT_EQ(entries(), 1U);
    const Status refused = check_writable(folder_ / "missing" / "text");
    EXPECT_NE(refused.message().find("No such file"), std::string::npos) << refused.message();
}

}  // namespace
}  // namespace pccl::sys
