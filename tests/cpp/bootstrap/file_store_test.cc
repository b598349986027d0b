// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/file_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pccl/store.h>
#include "csrc/base/scope_exit.h"
#include "csrc/base/text/text.h"
#include "tests/cpp/bootstrap/store_kinds.h"
#include "tests/fakes/deadlines.h"

namespace pccl::bootstrap {
namespace {

using fakes::already;
using fakes::test_deadline;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(StoreProcessesTest, ForkedRanksMeetInAFile) {
    constexpr int kRanks = 4;
    const std::string path = fresh_path();
    const ScopeExit cleanup([&] { ::unlink(path.c_str()); });
    std::vector<pid_t> children;
    for (Rank rank = 0; rank < kRanks; ++rank) {
        const pid_t child = ::fork();
        if (child == 0) {
            auto store = open_store("file://" + path, rank, kRanks, test_deadline());
            bool good = store.is_ok() && store.value()->set(std::to_string(rank), "here").is_ok();
            for (Rank peer = 0; good && peer < kRanks; ++peer)
                good = store.value()->get(std::to_string(peer), test_deadline()).is_ok();
            for (int i = 0; good && i < 25; ++i) good = store.value()->add("sum", 1).is_ok();
            ::_exit(good ? 0 : 1);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    // As a rank that comes late.
    auto store = FileStore::open(path, 1, test_deadline());
    ASSERT_TRUE(store.is_ok());
    EXPECT_EQ(store.value()->add("sum", 0).value(), kRanks * 25);
}

TEST(FileStoreTest, AFileOfAnEarlierJobIsRefusedByRankZero) {
    const std::string path = fresh_path();
    const ScopeExit cleanup([&] { ::unlink(path.c_str()); });
    ASSERT_TRUE(FileStore::open(path, 0, test_deadline()).is_ok());
    const Status status = FileStore::open(path, 0, test_deadline()).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(path), HasSubstr("remove it")));
}

TEST(FileStoreTest, OneThatMayHoldAnythingIsOpenedAgain) {
    const std::string path = fresh_path();
    const ScopeExit cleanup([&] { ::unlink(path.c_str()); });
    ASSERT_TRUE(FileStore::open(path, 0, test_deadline()).value()->set("key", "value").is_ok());
    const auto again = FileStore::open(path, 0, test_deadline(), StoreContent::kAny);
    ASSERT_TRUE(again.is_ok()) << again.status().to_string();
    EXPECT_EQ(again.value()->get("key", already()).value(), "value");
    std::ofstream(path, std::ios::trunc) << "somebody's thesis, chapter one";
    EXPECT_THAT(FileStore::open(path, 0, test_deadline(), StoreContent::kAny).status().message(),
                HasSubstr("is not a store"));
}

TEST(FileStoreTest, AnEmptyFileWillDoAndAForeignOneIsLeftAlone) {
    const std::string path = fresh_path();
    const ScopeExit cleanup([&] { ::unlink(path.c_str()); });
    std::ofstream(path).close();
    EXPECT_TRUE(FileStore::open(path, 0, test_deadline()).is_ok());
    std::ofstream(path, std::ios::trunc) << "somebody's thesis, chapter one";
    EXPECT_EQ(FileStore::open(path, 0, test_deadline()).status().code(),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(FileStore::open(path, 1, test_deadline()).status().code(),
              StatusCode::kInvalidArgument);
    std::ifstream file(path);
    std::string content;
    std::getline(file, content);
    EXPECT_EQ(content, "somebody's thesis, chapter one");
}

TEST(FileStoreTest, TheFileIsForItsUserAlone) {
    const std::string path = fresh_path();
    const ScopeExit cleanup([&] { ::unlink(path.c_str()); });
    ASSERT_TRUE(FileStore::open(path, 0, test_deadline()).is_ok());
    struct stat facts {};
    ASSERT_EQ(::stat(path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600U);
    EXPECT_TRUE(FileStore::open(path, 1, test_deadline()).is_ok());
}

/// What every rank says of a file that is there already.
std::vector<Status> refusals_of(const std::string& path) {
    return {FileStore::open(path, 0, test_deadline()).status(),
            FileStore::open(path, 1, test_deadline()).status()};
}

TEST(FileStoreTest, AFileOfAnotherUserIsRefused) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
    const std::string path = fresh_path();
    const ScopeExit cleanup([&] { ::unlink(path.c_str()); });
    std::ofstream(path).close();
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
    for (const Status& status : refusals_of(path)) {
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        EXPECT_THAT(status.message(), AllOf(HasSubstr(path), HasSubstr("belongs to user 65534"),
                                            HasSubstr("name a file of your own")));
    }
}

TEST(FileStoreTest, AFileThatOthersMayWriteToIsRefused) {
    for (const mode_t mode : {0620U, 0602U}) {
        const std::string path = fresh_path();
        const ScopeExit cleanup([&] { ::unlink(path.c_str()); });
        std::ofstream(path).close();
        ASSERT_EQ(::chmod(path.c_str(), mode), 0);
        for (const Status& status : refusals_of(path)) {
            EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
            EXPECT_THAT(status.message(), AllOf(HasSubstr(path), HasSubstr("chmod 600")));
        }
    }
}

TEST(FileStoreTest, ALinkIsNotFollowedWhereverItLeads) {
    const std::string path = fresh_path();
    const std::string target = fresh_path();
    const ScopeExit cleanup([&] {
        ::unlink(path.c_str());
        ::unlink(target.c_str());
    });
    ASSERT_EQ(::symlink(target.c_str(), path.c_str()), 0);
    EXPECT_THAT(FileStore::open(path, 0, test_deadline()).status().message(),
                HasSubstr("symbolic link"));
    EXPECT_FALSE(std::filesystem::exists(target));
    std::ofstream(target).close();
    for (const Status& status : refusals_of(path)) {
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        EXPECT_THAT(status.message(), AllOf(HasSubstr(path), HasSubstr("symbolic link")));
    }
}

TEST(FileStoreTest, APipeIsNoFile) {
    const std::string path = fresh_path();
    const ScopeExit cleanup([&] { ::unlink(path.c_str()); });
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    for (const Status& status : refusals_of(path))
        EXPECT_THAT(status.message(), AllOf(HasSubstr(path), HasSubstr("no regular file")));
}

TEST(FileStoreTest, WaitingForRankZeroEndsAtTheDeadline) {
    const Status status = FileStore::open(fresh_path(), 1, shortly()).status();
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_EQ(status.peer(), 0);
    EXPECT_THAT(FileStore::open("/nowhere/at/all", 0, shortly()).status().message(),
                HasSubstr("/nowhere/at/all"));
}

TEST(FileStoreTest, ARecordCutShortByACrashIsForgotten) {
    const std::string path = fresh_path();
    const ScopeExit cleanup([&] { ::unlink(path.c_str()); });
    auto store = FileStore::open(path, 0, test_deadline()).value();
    ASSERT_TRUE(store->set("before", "1").is_ok());
    std::ofstream(path, std::ios::app | std::ios::binary) << std::string("\x20\0\0\0\x01\x06", 6);
    auto other = FileStore::open(path, 1, test_deadline()).value();
    EXPECT_EQ(other->get("before", test_deadline()).value(), "1");
    ASSERT_TRUE(other->set("after", "2").is_ok());
    EXPECT_EQ(store->get("after", test_deadline()).value(), "2");
}

void write_at(const std::string& path, std::streamoff offset, std::string_view bytes) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST(FileStoreTest, DamageIsReportedWithItsPlace) {
    const std::string path = fresh_path();
    const ScopeExit cleanup([&] { ::unlink(path.c_str()); });
    auto store = FileStore::open(path, 0, test_deadline()).value();
    const auto first = static_cast<std::streamoff>(std::filesystem::file_size(path));
    ASSERT_TRUE(store->set("key", "value").is_ok());
    ASSERT_TRUE(store->set("other", "intact").is_ok());
    for (const auto& [offset, bytes] : std::vector<std::pair<std::streamoff, std::string>>{
             {first, "\x01"},               // its own offset
             {first + 8, "\xff\xff\xff"},   // the record before it lies behind it
             {first + 16, "\xff\xff\xff"},  // a length beyond the longest
             {first + 20, "\x07"},          // an unknown kind
             {first + 21, "\x7f"}}) {       // a key that is longer than its record
        std::ifstream in(path, std::ios::binary);
        in.seekg(offset);
        std::string kept(bytes.size(), '\0');
        in.read(kept.data(), static_cast<std::streamsize>(kept.size()));
        write_at(path, offset, bytes);
        EXPECT_THAT(store->get("key", test_deadline()).status().message(),
                    AllOf(HasSubstr(path), HasSubstr(concat("damaged at byte ", first))));
        EXPECT_EQ(store->get("other", test_deadline()).value(), "intact");
        write_at(path, offset, kept);
    }
    EXPECT_EQ(store->get("key", test_deadline()).value(), "value");
    std::filesystem::resize_file(path, 20);
    EXPECT_THAT(store->get("other", test_deadline()).status().message(),
                HasSubstr("changed by another program"));
}

TEST(FileStoreTest, ManyKeysShareChains) {
    constexpr int kKeys = 9000;  // more than there are chains
    const std::string path = fresh_path();
    const ScopeExit cleanup([&] { ::unlink(path.c_str()); });
    auto store = FileStore::open(path, 0, test_deadline()).value();
    for (int key = 0; key < kKeys; ++key)
        ASSERT_TRUE(store->set(concat("key/", key), std::string(key % 2000, 'x')).is_ok());
    for (int key = 0; key < kKeys; key += 3)
        ASSERT_TRUE(store->remove(concat("key/", key)).is_ok());
    auto other = FileStore::open(path, 1, test_deadline()).value();
    for (int key = 0; key < kKeys; ++key) {
        const auto value = other->get(concat("key/", key), already());
        ASSERT_EQ(value.is_ok(), key % 3 != 0);
        if (!value.is_ok()) continue;
        ASSERT_EQ(value->size(), static_cast<std::size_t>(key % 2000));
    }
}

TEST(FileStoreTest, AStoreOfAnEarlierVersionIsRefused) {
    const std::string path = fresh_path();
    const ScopeExit cleanup([&] { ::unlink(path.c_str()); });
    std::ofstream(path) << "pccl store 1\n";
    EXPECT_THAT(FileStore::open(path, 1, test_deadline()).status().message(),
                HasSubstr("not a store of this version"));
}

}  // namespace
}  // namespace pccl::bootstrap
