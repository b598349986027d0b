// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include <pccl/store.h>
#include "csrc/base/ids.h"
#include "csrc/bootstrap/rendezvous/tcp_store.h"
#include "tests/cpp/bootstrap/store_kinds.h"
#include "tests/fakes/deadlines.h"

namespace pccl::bootstrap {
namespace {

using fakes::already;
using fakes::test_deadline;
using ::testing::HasSubstr;

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

INSTANTIATE_TEST_SUITE_P(
    Kinds, StoreTest,
    testing::Values(StoreKind{"File", open_file},
                    StoreKind{"Tcp", [](int n) { return open_tcp_at("127.0.0.1", n); }},
                    StoreKind{"TcpLocalhost", [](int n) { return open_tcp_at("localhost", n); }}),
    [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace pccl::bootstrap
