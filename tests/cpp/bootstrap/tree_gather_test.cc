// SPDX-License-Identifier: Apache-2.0

// How the texts of many ranks reach rank 0, and whom ranks name where one is missing.
#include "csrc/bootstrap/tree_gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "csrc/bootstrap/roster.h"
#include "tests/cpp/bootstrap/endpoints.h"
#include "tests/fakes/memory_store.h"

namespace pccl::bootstrap {
namespace {

using ::testing::HasSubstr;

/// What one rank does at a store of many: counted, and changed where a test says so.
class WatchedStore final : public Store {
   public:
    explicit WatchedStore(std::shared_ptr<Store> store) : store_(std::move(store)) {}

    Status set(const std::string& key, const std::string& value) override {
        const auto forged = forge ? forge(key) : std::nullopt;
        return store_->set(key, forged.value_or(value));
    }
    Result<std::string> get(const std::string& key, Deadline deadline) override {
        auto value = store_->get(key, deadline);
        if (value.is_ok()) ++found;
        return value;
    }
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override {
        return store_->add(key, delta);
    }
    Status remove(const std::string& key) override { return store_->remove(key); }

    int found = 0;
    std::function<std::optional<std::string>(const std::string& key)> forge;

   private:
    const std::shared_ptr<Store> store_;
};

/// Enough ranks that some gather for others: 0 to 15 by rank 0, 16 to 31 by 16, the rest by 32.
class ExchangeOfManyTest : public testing::Test {
   protected:
    static constexpr int kRanks = 40;

    ExchangeOfManyTest() {
        for (int rank = 0; rank < kRanks; ++rank)
            stores_.push_back(std::make_unique<WatchedStore>(store_));
    }

    /// Of all ranks but one; rank r's is at place r.
    std::vector<std::optional<Result<Roster>>> meet_without(Rank absent, Duration request_timeout) {
        std::vector<std::optional<Result<Roster>>> met(kRanks);
        std::vector<std::thread> threads;
        const Deadline deadline = Deadline::after(request_timeout);
        for (Rank rank = 0; rank < kRanks; ++rank) {
            if (rank == absent) continue;
            threads.emplace_back([&, rank] {
                const auto place = static_cast<std::size_t>(rank);
                WatchedStore& own = *stores_[place];
                met[place] = exchange_roster(own, endpoint(rank, "node" + std::to_string(rank)),
                                             {.size = kRanks,
                                              .deadline = deadline,
                                              .root = &root_,
                                              .lost = [&](auto present, Rank) {
                                                  return lost_ ? lost_(present) : Status::ok();
                                              }});
                if (!met[place]->is_ok())
                    static_cast<void>(agree_on_failure(own, met[place]->status(), rank));
            });
        }
        for (std::thread& thread : threads) thread.join();
        return met;
    }
    auto meet() { return meet_without(kNoRank, std::chrono::seconds(20)); }

    std::shared_ptr<fakes::MemoryStore> store_ = std::make_shared<fakes::MemoryStore>();
    std::vector<std::unique_ptr<WatchedStore>> stores_;
    std::function<Status(std::span<const Endpoint>)> lost_;
    const Endpoint root_ = endpoint(0, "node0");
};

TEST_F(ExchangeOfManyTest, AllHaveWhatEachHasPublished) {
    for (const auto& met : meet()) {
        ASSERT_TRUE((*met).is_ok()) << (*met).status().to_string();
        const std::vector<Endpoint>& endpoints = (**met).endpoints;
        ASSERT_EQ(endpoints.size(), kRanks);
        for (Rank rank = 0; rank < kRanks; ++rank) {
            const Endpoint& other = endpoints[static_cast<std::size_t>(rank)];
            EXPECT_EQ(other.rank, rank);
            EXPECT_EQ(other.host, "node" + std::to_string(rank));
        }
    }
}

TEST_F(ExchangeOfManyTest, NoRankGetsAnEntryOfEachOther) {
    static_cast<void>(meet());
    for (Rank rank = 0; rank < kRanks; ++rank) {
        // Of its own group, of gatherers, and the roster.
        const int most = rank % 16 == 0 ? 15 + 2 + 2 : 3;
        EXPECT_LE(stores_[static_cast<std::size_t>(rank)]->found, most) << rank;
    }
}

TEST_F(ExchangeOfManyTest, AMissingRankIsNamedOnAll) {
    for (const Rank absent : {5, 16, 20, 39}) {
        store_ = std::make_shared<fakes::MemoryStore>();
        for (auto& own : stores_) own = std::make_unique<WatchedStore>(store_);
        const auto met = meet_without(absent, std::chrono::seconds(2));
        for (Rank rank = 0; rank < kRanks; ++rank) {
            if (rank == absent) continue;
            const Status status = met[static_cast<std::size_t>(rank)]->status();
            EXPECT_EQ(status.code(), StatusCode::kTimeout);
            EXPECT_EQ(status.peer(), absent) << rank;
            EXPECT_EQ(status.message(), "timed out: rank " + std::to_string(absent) +
                                            " has not joined; is every rank running?");
        }
    }
}

TEST_F(ExchangeOfManyTest, AGathererWhoseTextCannotBeReadIsBlamed) {
    stores_[16]->forge = [](const std::string& key) {
        return key.starts_with("endpoint/by/") ? std::optional<std::string>("nonsense")
                                               : std::nullopt;
    };
    const auto met = meet_without(kNoRank, std::chrono::seconds(20));
    const Status status = met[0]->status();
    EXPECT_EQ(status.code(), StatusCode::kPeerLost);
    EXPECT_EQ(status.peer(), 16);
    EXPECT_THAT(status.message(), HasSubstr("rank 16 publishes an entry that cannot be read"));
}

TEST_F(ExchangeOfManyTest, MalformedBytesAreBlamedOnTheirSender) {
    stores_[21]->forge = [](const std::string& key) {
        return key == "endpoint/21" ? std::optional<std::string>("nonsense") : std::nullopt;
    };
    for (const auto& met : meet()) {
        const Status status = met->status();
        EXPECT_EQ(status.code(), StatusCode::kPeerLost);
        EXPECT_EQ(status.peer(), 21);
        EXPECT_THAT(status.message(), HasSubstr("rank 21 publishes an entry that cannot be read"));
    }
}

/// Rank 18 ends when it has said who it is, and others are still awaited: in its own group, or in
/// another.
TEST_F(ExchangeOfManyTest, WhoEndsWhileOthersAreAwaitedIsNamedOnAll) {
    for (const Rank absent : {20, 39}) {
        store_ = std::make_shared<fakes::MemoryStore>();
        for (auto& own : stores_) own = std::make_unique<WatchedStore>(store_);
        lost_ = [](std::span<const Endpoint> present) {
            return std::ranges::find(present, 18, &Endpoint::rank) == present.end()
                       ? Status::ok()
                       : Status::peer_lost(18, "rank 18 has ended");
        };
        const auto met = meet_without(absent, std::chrono::seconds(20));
        for (Rank rank = 0; rank < kRanks; ++rank) {
            if (rank == absent) continue;
            const Status status = met[static_cast<std::size_t>(rank)]->status();
            EXPECT_EQ(status.code(), StatusCode::kPeerLost) << rank;
            EXPECT_EQ(status.peer(), 18) << rank;
        }
    }
}

TEST_F(ExchangeOfManyTest, RankZeroIsLookedAtByThoseWhoGather) {
    lost_ = [](std::span<const Endpoint> present) {
        return std::ranges::find(present, 0, &Endpoint::rank) == present.end()
                   ? Status::ok()
                   : Status::peer_lost(0, "rank 0 has ended");
    };
    const auto met = meet_without(20, std::chrono::seconds(20));
    for (const Rank rank : {1, 17, 32, 39}) {
        EXPECT_EQ(met[static_cast<std::size_t>(rank)]->status().peer(), 0) << rank;
    }
}

TEST(TreeGatherTest, ASleepingGathererIsNamed) {
    fakes::MemoryStore store;
    for (Rank rank = 0; rank < 40; ++rank)
        ASSERT_TRUE(store.set("word/" + std::to_string(rank), "x").is_ok());
    EXPECT_TRUE(silent_in(store, "word", 40).empty());
    EXPECT_EQ(idle_gatherer_in(store, "word", 40), 16);
    ASSERT_TRUE(publish_text(store, "word/by/16", "x").is_ok());
    EXPECT_EQ(idle_gatherer_in(store, "word", 40), 32);
    ASSERT_TRUE(publish_text(store, "word/by/32", "x").is_ok());
    EXPECT_EQ(idle_gatherer_in(store, "word", 40), 0);
}

TEST(TreeGatherTest, GroupsAreAboutTheSquareRootOfAll) {
    EXPECT_EQ(gatherer_of(15, 16), 0);
    EXPECT_EQ(gatherer_of(31, 64), 16);
    EXPECT_EQ(gatherer_of(1'023, 1'024), 992);
    EXPECT_EQ(gatherer_of(255, 65'536), 0);
    EXPECT_EQ(gatherer_of(256, 65'536), 256);
}

}  // namespace
}  // namespace pccl::bootstrap
