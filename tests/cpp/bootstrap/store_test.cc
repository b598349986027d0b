// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include <pccl/store.h>
#include "csrc/base/ids.h"
#include "csrc/base/scope_exit.h"
#include "csrc/bootstrap/rendezvous/dictionary.h"
#include "csrc/bootstrap/rendezvous/file_store.h"
#include "csrc/bootstrap/rendezvous/prefix_store.h"
#include "csrc/bootstrap/rendezvous/tcp_store.h"
#include "csrc/sys/socket/socket.h"
#include "csrc/transport/control/handshake.h"
#include "tests/fakes/deadlines.h"

namespace pccl::bootstrap {
namespace {

using fakes::already;
using fakes::test_deadline;
using ::testing::AllOf;
using ::testing::HasSubstr;

Deadline shortly() { return Deadline::after(std::chrono::milliseconds(30)); }

std::string fresh_path() {
    static int count = 0;
    const auto folder = std::filesystem::path(testing::TempDir());
    return folder / ("pccl-store-" + std::to_string(::getpid()) + "-" + std::to_string(++count));
}

/// One store of each kind, as several ranks see it.
struct StoreKind {
    const char* name;
    std::function<std::vector<std::shared_ptr<Store>>(int ranks)> open;
};

std::vector<std::shared_ptr<Store>> open_file(int ranks) {
    const std::string path = fresh_path();
    std::vector<std::shared_ptr<Store>> stores;
    for (Rank rank = 0; rank < ranks; ++rank)
        stores.push_back(open_store("file://" + path, rank, ranks, test_deadline()).value());
    ::unlink(path.c_str());
    return stores;
}

std::vector<std::shared_ptr<Store>> open_tcp_at(const std::string& host, int ranks) {
    std::vector<std::shared_ptr<Store>> stores;
    auto first = TcpStore::host({host, 0}, test_deadline()).value();
    stores.push_back(first);
    for (Rank rank = 1; rank < ranks; ++rank)
        stores.push_back(TcpStore::join(first->location(), test_deadline()).value());
    return stores;
}

class StoreTest : public testing::TestWithParam<StoreKind> {
   protected:
    std::vector<std::shared_ptr<Store>> stores_ = GetParam().open(3);
};

TEST_P(StoreTest, WhatOneRankSetsAnotherGets) {
    const std::string value("with\0zero\n", 10);
    ASSERT_TRUE(stores_[1]->set("key", value).is_ok());
    EXPECT_EQ(stores_[0]->get("key", test_deadline()).value(), value);
    EXPECT_EQ(stores_[2]->get("key", already()).value(), value);
    ASSERT_TRUE(stores_[2]->set("key", "").is_ok());
    EXPECT_EQ(stores_[1]->get("key", test_deadline()).value(), "");
}

TEST_P(StoreTest, GetWaitsUntilTheKeyExists) {
    std::thread setter([&] {
        system_clock().sleep_for(std::chrono::milliseconds(20));
        ASSERT_TRUE(stores_[1]->set("late", "value").is_ok());
    });
    std::thread other(
        [&] { EXPECT_EQ(stores_[2]->get("late", test_deadline()).value(), "value"); });
    EXPECT_EQ(stores_[0]->get("late", test_deadline()).value(), "value");
    setter.join();
    other.join();
}

TEST_P(StoreTest, ATimeoutNamesTheKeyAndLeavesTheStoreUsable) {
    for (const Deadline deadline : {already(), shortly()}) {
        const Status status = stores_[1]->get("missing", deadline).status();
        EXPECT_EQ(status.code(), StatusCode::kTimeout);
        EXPECT_THAT(status.message(), HasSubstr("\"missing\""));
    }
    ASSERT_TRUE(stores_[0]->set("missing", "here now").is_ok());
    ASSERT_TRUE(stores_[0]->set("other", "beside").is_ok());
    EXPECT_EQ(stores_[1]->get("other", test_deadline()).value(), "beside");
    EXPECT_EQ(stores_[1]->get("missing", test_deadline()).value(), "here now");
}

TEST_P(StoreTest, CountersLoseNoAddition) {
    constexpr int kEach = 50;
    std::vector<std::thread> ranks;
    for (auto& store : stores_)
        ranks.emplace_back([&store] {
            for (int i = 0; i < kEach; ++i) ASSERT_TRUE(store->add("counter", 2).is_ok());
        });
    for (auto& rank : ranks) rank.join();
    EXPECT_EQ(stores_[0]->add("counter", 0).value(), 2 * kEach * 3);
    EXPECT_EQ(stores_[1]->add("counter", -1).value(), 2 * kEach * 3 - 1);
    EXPECT_EQ(stores_[2]->get("counter", test_deadline()).value(),
              std::to_string(2 * kEach * 3 - 1));
}

TEST_P(StoreTest, TextsAreNoCounters) {
    ASSERT_TRUE(stores_[0]->set("text", "12 monkeys").is_ok());
    EXPECT_EQ(stores_[1]->add("text", 1).status().code(), StatusCode::kInvalidArgument);
    ASSERT_TRUE(stores_[0]->set("large", "9223372036854775807").is_ok());
    EXPECT_EQ(stores_[1]->add("large", 1).status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(stores_[1]->get("text", test_deadline()).value(), "12 monkeys");
}

TEST_P(StoreTest, RemovedKeysAreGone) {
    ASSERT_TRUE(stores_[0]->set("key", "value").is_ok());
    ASSERT_TRUE(stores_[1]->remove("key").is_ok());
    ASSERT_TRUE(stores_[1]->remove("never there").is_ok());
    EXPECT_EQ(stores_[2]->get("key", already()).status().code(), StatusCode::kTimeout);
    EXPECT_EQ(stores_[2]->add("key", 3).value(), 3);
}

TEST_P(StoreTest, SizesAreBounded) {
    const std::string longest(64 * kKiB, 'v');
    ASSERT_TRUE(stores_[0]->set(std::string(256, 'k'), longest).is_ok());
    EXPECT_EQ(stores_[1]->get(std::string(256, 'k'), test_deadline()).value(), longest);
    EXPECT_EQ(stores_[0]->set("k", longest + "v").code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(stores_[0]->set(std::string(257, 'k'), "v").code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(stores_[0]->set("", "v").code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(stores_[0]->get("", already()).status().code(), StatusCode::kInvalidArgument);
}

TEST_P(StoreTest, PrefixesKeepGroupsApart) {
    const auto left = prefixed(stores_[0], "left");
    const auto right = prefixed(stores_[1], "right");
    ASSERT_TRUE(left->set("key", "l").is_ok());
    ASSERT_TRUE(right->set("key", "r").is_ok());
    EXPECT_EQ(left->get("key", test_deadline()).value(), "l");
    EXPECT_EQ(right->get("key", test_deadline()).value(), "r");
    EXPECT_EQ(stores_[2]->get("left/key", test_deadline()).value(), "l");
    EXPECT_EQ(left->add("count", 1).value(), 1);
    EXPECT_EQ(right->add("count", 1).value(), 1);
    ASSERT_TRUE(left->remove("key").is_ok());
    EXPECT_EQ(right->get("key", test_deadline()).value(), "r");
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, StoreTest,
    testing::Values(StoreKind{"File", open_file},
                    StoreKind{"Tcp", [](int n) { return open_tcp_at("127.0.0.1", n); }},
                    StoreKind{"TcpLocalhost", [](int n) { return open_tcp_at("localhost", n); }}),
    [](const auto& kind) { return std::string(kind.param.name); });

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

TEST(FileStoreTest, DamageIsReportedWithItsPlace) {
    const std::string path = fresh_path();
    const ScopeExit cleanup([&] { ::unlink(path.c_str()); });
    auto store = FileStore::open(path, 0, test_deadline()).value();
    std::ofstream(path, std::ios::app | std::ios::binary) << std::string("\x02\0\0\0\x01\x06", 6);
    EXPECT_THAT(store->get("key", test_deadline()).status().message(),
                HasSubstr("damaged behind byte 13"));
}

TEST(TcpStoreTest, JoiningNobodyNamesTheAddressAndRankZero) {
    // A port that is surely free: it was bound a moment ago.
    std::uint16_t port = 0;
    {
        const auto listener = sys::listen_on(sys::Address::from_ip("127.0.0.1", 0).value()).value();
        port = sys::local_address(listener.get()).value().port();
    }
    const Status status = TcpStore::join({"127.0.0.1", port}, shortly()).status();
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_EQ(status.peer(), 0);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("tcp://127.0.0.1:" + std::to_string(port)),
                                        HasSubstr("is rank 0 running")));
}

TEST(TcpStoreTest, ATakenPortIsNamed) {
    const auto first = TcpStore::host({"127.0.0.1", 0}, test_deadline()).value();
    const Status status = TcpStore::host(first->location(), test_deadline()).status();
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr(first->location().to_string()), HasSubstr("free")));
}

Result<std::shared_ptr<TcpStore>> host_any(const StoreLocation& location, Deadline deadline) {
    return TcpStore::host(location, deadline, kNoStoreSecret, StoreContent::kAny);
}

TEST(TcpStoreTest, OneThatMayHoldAnythingIsSharedByThisProcess) {
    StoreLocation free{"127.0.0.1", 0};
    free.port = TcpStore::host(free, test_deadline()).value()->location().port;
    auto first = host_any(free, test_deadline()).value();
    ASSERT_TRUE(first->set("key", "value").is_ok());
    const auto second = host_any(free, test_deadline()).value();
    first.reset();
    EXPECT_EQ(second->get("key", already()).value(), "value");
}

TEST(TcpStoreTest, OneThatMayHoldAnythingWaitsForAPortThatBecomesFree) {
    auto before = TcpStore::host({"127.0.0.1", 0}, test_deadline()).value();
    const StoreLocation location = before->location();
    EXPECT_THAT(host_any(location, shortly()).status().message(), HasSubstr("must be free"));
    std::thread ending([&] {
        system_clock().sleep_for(std::chrono::milliseconds(30));
        before.reset();
    });
    const auto after = host_any(location, test_deadline());
    ending.join();
    EXPECT_TRUE(after.is_ok()) << after.status().to_string();
}

TEST(TcpStoreTest, WhoseServerHasGoneJoinsTheNext) {
    auto before = TcpStore::host({"127.0.0.1", 0}, test_deadline()).value();
    const StoreLocation location = before->location();
    const auto rank_1 = TcpStore::join(location, test_deadline()).value();
    ASSERT_TRUE(rank_1->set("key", "before").is_ok());
    before.reset();
    EXPECT_EQ(rank_1->get("key", test_deadline()).status().code(), StatusCode::kUnavailable);
    EXPECT_FALSE(rank_1->reopen(shortly()).is_ok());
    EXPECT_EQ(rank_1->get("key", test_deadline()).status().code(), StatusCode::kUnavailable);
    const auto after = host_any(location, test_deadline()).value();
    ASSERT_TRUE(after->set("key", "after").is_ok());
    ASSERT_TRUE(prefixed(rank_1, "part")->reopen(test_deadline()).is_ok());
    EXPECT_EQ(rank_1->get("key", test_deadline()).value(), "after");
}

TEST(TcpStoreTest, JoiningBeforeRankZeroHostsWaitsForIt) {
    auto probe = TcpStore::host({"127.0.0.1", 0}, test_deadline()).value();
    const StoreLocation location = probe->location();
    probe.reset();
    std::thread late([&] {
        system_clock().sleep_for(std::chrono::milliseconds(30));
        const auto store = TcpStore::host(location, test_deadline()).value();
        EXPECT_EQ(store->get("done", test_deadline()).value(), "1");
    });
    auto store = TcpStore::join(location, test_deadline());
    ASSERT_TRUE(store.is_ok()) << store.status().to_string();
    ASSERT_TRUE(store.value()->set("done", "1").is_ok());
    late.join();
}

TEST(TcpStoreTest, WhenRankZeroLeavesTheOthersAreTold) {
    auto first = TcpStore::host({"127.0.0.1", 0}, test_deadline()).value();
    auto second = TcpStore::join(first->location(), test_deadline()).value();
    first.reset();
    const Status status = second->get("key", test_deadline()).status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("did rank 0 leave"));
    EXPECT_EQ(second->set("key", "value").code(), StatusCode::kUnavailable);
}

TEST(TcpStoreTest, AServiceOfAnotherKindIsRecognised) {
    const auto listener = sys::listen_on(sys::Address::from_ip("127.0.0.1", 0).value()).value();
    const auto address = sys::local_address(listener.get()).value();
    std::thread other_service([&] {
        const sys::Interest interest{.fd = listener.get(), .input = true};
        ASSERT_TRUE(sys::wait_for_any({&interest, 1}, std::chrono::seconds(30)));
        const auto socket = sys::accept_next(listener.get()).value().value();
        ASSERT_TRUE(sys::send_all(socket.get(),
                                  std::as_bytes(std::span("SSH-2.0-OpenSSH_9.2 Debian", 26)),
                                  test_deadline())
                        .is_ok());
        std::byte greeting[14];
        ASSERT_TRUE(sys::receive_all(socket.get(), greeting, test_deadline()).is_ok());
    });
    const Status status = TcpStore::join({"127.0.0.1", address.port()}, test_deadline()).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("no pccl store"));
    other_service.join();
}

/// As a stranger may, where the job has no secret.
UniqueFd enter(const sys::Address& address) {
    const transport::Introduction introduction{.request = {.group = kStoreGroup}};
    auto sockets = transport::connect_authenticated({address, kNoStoreSecret}, {&introduction, 1},
                                                    test_deadline());
    EXPECT_TRUE(sockets.is_ok()) << sockets.status().to_string();
    return sockets.is_ok() ? std::move(sockets->front()) : UniqueFd();
}

/// It may be dropped while this still sends.
void send(const UniqueFd& socket, const std::string& bytes) {
    static_cast<void>(
        sys::send_all(socket.get(), std::as_bytes(std::span(bytes)), test_deadline()));
}

/// Gives the bytes that came before.
std::size_t expect_closed(const UniqueFd& socket) {
    const Deadline deadline = test_deadline();
    std::size_t bytes = 0;
    std::array<std::byte, 4096> piece{};
    while (!deadline.passed()) {
        const sys::Interest interest{.fd = socket.get(), .input = true};
        sys::wait_for_any({&interest, 1}, deadline.slice());
        const auto count = sys::receive_some(socket.get(), piece);
        if (!count.is_ok()) return bytes;
        bytes += *count;
    }
    ADD_FAILURE() << "the store has not closed the connection";
    return bytes;
}

TEST(TcpStoreTest, MalformedBytesFromStrangersDoNotDisturbTheStore) {
    const auto store = TcpStore::host({"127.0.0.1", 0}, test_deadline()).value();
    const auto address = sys::Address::from_ip("127.0.0.1", store->location().port).value();
    for (const std::string& malformed :
         {std::string("GET / HTTP/1.1\r\n\r\n") + std::string(200, ' '),
          std::string(200'000, '\0')}) {
        const auto socket = sys::connect_to(address, test_deadline()).value();
        send(socket, malformed);
        expect_closed(socket);
        EXPECT_TRUE(store->set("key", "still here").is_ok());
    }
    for (const std::string& malformed :
         {std::string("\xFF\xFF\xFF\xFF", 4), std::string("\x03\0\0\0\x09zz", 7),
          std::string(200'000, '\0')}) {
        const auto socket = enter(address);
        send(socket, malformed);
        expect_closed(socket);
        EXPECT_TRUE(store->set("key", "still here").is_ok());
    }
    EXPECT_EQ(store->get("key", test_deadline()).value(), "still here");
}

TEST(TcpStoreTest, SilentStrangersKeepNobodyOut) {
    const auto store = TcpStore::host({"127.0.0.1", 0}, test_deadline()).value();
    const auto address = sys::Address::from_ip("127.0.0.1", store->location().port).value();
    std::vector<UniqueFd> strangers;
    for (int i = 0; i < 300; ++i)
        strangers.push_back(sys::connect_to(address, test_deadline()).value());
    const auto rank = TcpStore::join(store->location(), test_deadline()).value();
    ASSERT_TRUE(rank->set("key", "value").is_ok());
    EXPECT_EQ(store->get("key", test_deadline()).value(), "value");
    expect_closed(strangers.front());
}

TEST(TcpStoreTest, NobodyWithoutTheSecretComesIn) {
    const transport::Secret secret{1, 2, 3};
    const auto store = TcpStore::host({"127.0.0.1", 0}, test_deadline(), secret).value();
    ASSERT_TRUE(store->set("key", "value").is_ok());
    for (const transport::Secret& other : {kNoStoreSecret, transport::Secret{4}}) {
        const Status status = TcpStore::join(store->location(), test_deadline(), other).status();
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        EXPECT_THAT(status.message(),
                    AllOf(HasSubstr(store->location().to_string()),
                          HasSubstr("does not prove the secret"), HasSubstr("PCCL_SECRET_FILE")));
    }
    const auto rank = TcpStore::join(store->location(), test_deadline(), secret).value();
    EXPECT_EQ(rank->get("key", test_deadline()).value(), "value");
}

TEST(TcpStoreTest, ARankWithASecretEntersNoStoreWithoutIt) {
    const auto store = TcpStore::host({"127.0.0.1", 0}, test_deadline()).value();
    const Status status = TcpStore::join(store->location(), test_deadline(), {1, 2, 3}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("PCCL_SECRET_FILE"));
}

TEST(TcpStoreTest, ANameIsListenedAtWhereItLeadsAndNowhereElse) {
    std::array<char, 256> name{};
    ASSERT_EQ(::gethostname(name.data(), name.size() - 1), 0);
    const auto addresses = sys::resolve(name.data(), 0);
    if (!addresses.is_ok()) GTEST_SKIP() << addresses.status().message();
    const auto store = TcpStore::host({name.data(), 0}, test_deadline());
    ASSERT_TRUE(store.is_ok()) << store.status().to_string();
    const std::uint16_t port = store.value()->location().port;
    EXPECT_TRUE(TcpStore::join(store.value()->location(), test_deadline()).is_ok());
    // Which whoever listens at all interfaces hears.
    const auto elsewhere = sys::Address::from_ip("127.77.77.77", port).value();
    EXPECT_EQ(sys::connect_to(elsewhere, test_deadline()).status().code(),
              StatusCode::kUnavailable);
}

TEST(TcpStoreTest, AnAddressOfAnotherMachineIsRefused) {
    const Status status = TcpStore::host({"192.0.2.1", 0}, test_deadline()).status();
    EXPECT_THAT(status.message(), AllOf(HasSubstr("192.0.2.1"), HasSubstr("run on that host")));
}

class StoreServerTest : public testing::Test {
   protected:
    void start(const StoreServer::StoreServerOptions& options) {
        const auto any = sys::Address::from_ip("127.0.0.1", 0).value();
        server_ = StoreServer::start({&any, 1}, options).value();
        address_ = server_->addresses().front();
        location_ = {"127.0.0.1", address_.port()};
    }

    std::unique_ptr<StoreServer> server_;
    sys::Address address_;
    StoreLocation location_;
};

TEST_F(StoreServerTest, HalfARequestIsWaitedForInBoundsOnly) {
    start({.request_timeout = std::chrono::milliseconds(100)});
    const auto rank = TcpStore::join(location_, test_deadline()).value();
    const auto stranger = enter(address_);
    send(stranger, frame_of(StoreRequest{StoreVerb::kSet, 1, "key", "value", 0}).substr(0, 10));
    expect_closed(stranger);
    // Who waits for an answer has nothing to finish.
    std::thread waiting([&] { EXPECT_EQ(rank->get("late", test_deadline()).value(), "value"); });
    system_clock().sleep_for(std::chrono::milliseconds(300));
    const auto other = TcpStore::join(location_, test_deadline()).value();
    EXPECT_TRUE(other->set("late", "value").is_ok());
    waiting.join();
}

TEST_F(StoreServerTest, WhoDoesNotTakeItsAnswersIsDropped) {
    start({.request_timeout = std::chrono::milliseconds(200)});
    const auto rank = TcpStore::join(location_, test_deadline()).value();
    ASSERT_TRUE(rank->set("key", std::string(kLongestValue, 'v')).is_ok());
    const auto stranger = enter(address_);
    constexpr std::size_t kRequests = 1000;  // for 64 MB of answers
    std::string requests;
    for (std::uint32_t id = 0; id < kRequests; ++id)
        requests += frame_of(StoreRequest{StoreVerb::kLookUp, id, "key", "", 0});
    send(stranger, requests);
    EXPECT_EQ(rank->add("counter", 1).value(), 1);
    system_clock().sleep_for(std::chrono::seconds(2));
    EXPECT_LT(expect_closed(stranger), kRequests * kLongestValue);
    EXPECT_EQ(rank->add("counter", 1).value(), 2);
}

TEST_F(StoreServerTest, BeyondItsLimitClientsWaitTheirTurn) {
    start({.most_clients = 2});
    auto first = TcpStore::join(location_, test_deadline()).value();
    auto second = TcpStore::join(location_, test_deadline()).value();
    ASSERT_TRUE(first->set("key", "value").is_ok());
    ASSERT_TRUE(second->set("key", "value").is_ok());
    EXPECT_EQ(
        TcpStore::join(location_, Deadline::after(std::chrono::milliseconds(200))).status().code(),
        StatusCode::kTimeout);
    std::thread third([&] {
        const auto store = TcpStore::join(location_, test_deadline());
        ASSERT_TRUE(store.is_ok()) << store.status().to_string();
        EXPECT_EQ(store.value()->get("key", test_deadline()).value(), "value");
    });
    first.reset();
    third.join();
}

TEST_F(StoreServerTest, AClientThatDiesWhileItWaitsIsForgotten) {
    start({});
    const auto rank = TcpStore::join(location_, test_deadline()).value();
    for (int i = 0; i < 10; ++i) {
        const auto stranger = enter(address_);
        send(stranger, frame_of(StoreRequest{StoreVerb::kGet, 1, "key", "", 0}));
        if (i % 2 == 0) send(stranger, "half");
    }
    EXPECT_TRUE(rank->set("key", "value").is_ok());
    EXPECT_EQ(rank->get("key", test_deadline()).value(), "value");
}

TEST(DictionaryTest, OneOwnerDoesNotFillIt) {
    Dictionary entries;
    const std::string value(kLongestValue, 'v');
    int taken = 0;
    Status status;
    while ((status = entries.set(std::to_string(taken), value, 7)).is_ok()) ++taken;
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(status.message(), HasSubstr("of this rank"));
    EXPECT_NEAR(taken, 1024, 4);  // 64 MiB
    // What is there may change, what others have counts for them, what goes makes room.
    EXPECT_TRUE(entries.set("0", value, 7).is_ok());
    EXPECT_TRUE(entries.set("other", value, 8).is_ok());
    EXPECT_FALSE(entries.set("one more", value, 7).is_ok());
    EXPECT_TRUE(entries.set("0", value, 8).is_ok());
    EXPECT_TRUE(entries.set("one more", value, 7).is_ok());
    EXPECT_FALSE(entries.set("and another", value, 7).is_ok());
    entries.remove("one more");
    EXPECT_TRUE(entries.set("and another", value, 7).is_ok());
}

TEST(DictionaryTest, AllOwnersTogetherAreBounded) {
    Dictionary entries;
    const std::string value(kLongestValue, 'v');
    std::uint64_t taken = 0;
    while (entries.set(std::to_string(taken), value, 1 + taken % 100).is_ok()) ++taken;
    EXPECT_NEAR(static_cast<double>(taken), 4096, 4);  // 256 MiB
}

TEST(TcpProtocolTest, RandomFramesGiveAStatus) {
    const std::string request = frame_of(StoreRequest{StoreVerb::kAdd, 7, "key", "value", -3});
    const std::string answer = frame_of(StoreAnswer{7, StatusCode::kTimeout, "text"});
    std::mt19937 random(5);
    int readable = 0;
    for (int round = 0; round < 20'000; ++round) {
        std::string buffer = random() % 2 == 0 ? request : answer;
        for (std::size_t hits = random() % 4; hits > 0; --hits)
            buffer[random() % buffer.size()] = static_cast<char>(random());
        if (random() % 4 == 0) buffer.resize(random() % buffer.size());
        const auto payload = take_frame(buffer);
        if (!payload.is_ok() || !payload.value()) continue;
        const auto as_request = parse_request(*payload.value());
        const auto as_answer = parse_answer(*payload.value());
        if (as_request.is_ok()) {
            ASSERT_EQ(frame_of(as_request.value()).substr(4), *payload.value());
        }
        if (as_answer.is_ok()) {
            ASSERT_EQ(frame_of(as_answer.value()).substr(4), *payload.value());
        }
        readable += as_request.is_ok() || as_answer.is_ok() ? 1 : 0;
    }
    EXPECT_GT(readable, 1000);
}

TEST(OpenStoreTest, MalformedUrlsSayWhatWouldBeRight) {
    for (const char* const url : {"", "tcp://", "tcp://host", "tcp://:29500", "tcp://host:0",
                                  "tcp://host:65536", "tcp://host:12x", "tcp://fd00::1:29500",
                                  "http://host:1", "file://relative", "127.0.0.1:29500"}) {
        const Status status = open_store(url, 0, 1, shortly()).status();
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << url;
        EXPECT_THAT(status.message(), HasSubstr("write ")) << url;
    }
    EXPECT_EQ(open_store("tcp://127.0.0.1:29500", 2, 2, shortly()).status().code(),
              StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pccl::bootstrap
