// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/sysfs/special_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

#include "csrc/sys/sysfs/file.h"
#include "tests/cpp/sys/test_files.h"

namespace pccl::sys {
namespace {

TEST_F(FileTest, WhatIsNoRegularFileIsNotRead) {
    const std::string pipe = folder_ / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const std::pair<std::string, const char*> cases[] = {
        {pipe, "a pipe"}, {folder_, "a folder"}, {"/dev/zero", "a device"}};
    for (const auto& [path, kind] : cases) {
        const Status refused = read_file(path, 100).status();
        EXPECT_EQ(refused.code(), StatusCode::kUnavailable) << path;
        EXPECT_NE(refused.message().find(path), std::string::npos) << refused.message();
        EXPECT_NE(refused.message().find(kind), std::string::npos) << refused.message();
        EXPECT_FALSE(read_start(path, 100).is_ok());
    }
    // These say that they have no bytes.
    EXPECT_GT(read_start("/proc/self/maps", 1000)->size(), 100U);
}

/// What a path is, not what it leads to.
fs::file_type kind_at(const std::string& path) { return fs::symlink_status(path).type(); }

TEST_F(FileTest, PipesAreWrittenToAndStay) {
    const std::string path = folder_ / "pipe";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const std::string text(300'000, 'x');
    std::string read;
    std::thread reader([&] {
        std::ifstream pipe(path);
        read.assign(std::istreambuf_iterator<char>(pipe), {});
    });
    EXPECT_TRUE(write_file(path, text).is_ok());
    reader.join();
    EXPECT_EQ(read, text);
    EXPECT_EQ(kind_at(path), fs::file_type::fifo);
}

TEST_F(FileTest, APipeThatNobodyReadsIsRefused) {
    const std::string path = folder_ / "pipe";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    for (const Status& refused : {write_file(path, "text"), check_writable(path)})
        EXPECT_NE(refused.message().find("nobody reads"), std::string::npos) << refused.message();
    EXPECT_EQ(kind_at(path), fs::file_type::fifo);
    EXPECT_EQ(entries(), 1U);
}

TEST_F(FileTest, DevicesAreWrittenToAndStay) {
    const fs::path null = folder_ / "null";
    const fs::path full = folder_ / "full";
    if (::mknod(null.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0)
        fs::create_symlink("/dev/null", null);
    if (::mknod(full.c_str(), S_IFCHR | 0666, makedev(1, 7)) != 0)
        fs::create_symlink("/dev/full", full);
    const fs::file_type kind = kind_at(null);
    EXPECT_TRUE(write_file(null, "text").is_ok());
    EXPECT_TRUE(check_writable(null).is_ok());
    const Status refused = write_file(full, "text");
    EXPECT_NE(refused.message().find("No space left"), std::string::npos) << refused.message();
    EXPECT_EQ(kind_at(null), kind);
    EXPECT_EQ(kind_at(full), kind);
    EXPECT_EQ(entries(), 2U);
}

TEST_F(FileTest, ADescriptorOfThisProcessIsWrittenToWhereItStands) {
    const std::string path = folder_ / "text";
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(::write(file.get(), "before ", 7), 7);
    const std::string number = std::to_string(file.get());
    const fs::path link = folder_ / "link";  // as /dev/stdout is one
    fs::create_symlink("/proc/self/fd/" + number, link);
    EXPECT_TRUE(write_file("/dev/fd/" + number, "one ").is_ok());
    EXPECT_TRUE(write_file("/proc/self/fd/" + number, "two ").is_ok());
    EXPECT_TRUE(write_file(link, "three ").is_ok());
    ASSERT_EQ(::write(file.get(), "after", 5), 5);
    EXPECT_EQ(*read_file(path, 100), "before one two three after");
    EXPECT_EQ(kind_at(link), fs::file_type::symlink);
    EXPECT_FALSE(write_file("/proc/self/fd/999999", "text").is_ok());
}

TEST_F(FileTest, SocketsAreRefusedAndStay) {
    const std::string path = folder_ / "socket";
    ASSERT_EQ(::mknod(path.c_str(), S_IFSOCK | 0600, 0), 0);
    EXPECT_NE(write_file(path, "text").message().find("it is a socket"), std::string::npos);
    EXPECT_EQ(kind_at(path), fs::file_type::socket);
    EXPECT_FALSE(read_file(path, 100).is_ok());
}

}  // namespace
}  // namespace pccl::sys
