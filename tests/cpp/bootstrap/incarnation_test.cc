// SPDX-License-Identifier: Apache-2.0

// How groups come about again and again at one store, whatever it holds.
#include "csrc/bootstrap/incarnation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "csrc/base/clock.h"
#include "tests/fakes/memory_store.h"

namespace pccl::bootstrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Duration kLong = std::chrono::seconds(60);

/// A process of a rank: once it is killed, nothing of it reaches the store.
struct Process {
    static constexpr int kForEver = 1 << 30;

    explicit Process(Rank of, int operations = kForEver) : rank(of), left(operations) {}
    [[nodiscard]] bool is_alive() const { return left.load() > 0; }
    void kill() { left.store(0); }

    const Rank rank;
    std::atomic<int> left;  // operations on the store until it is killed
};

/// The store as one process uses it.
class StoreOfProcess final : public Store {
   public:
    StoreOfProcess(std::shared_ptr<Store> store, Process& process)
        : store_(std::move(store)), process_(process) {}

    Status set(const std::string& key, const std::string& value) override {
        PCCL_TRY(operate(key));
        return store_->set(key, value);
    }
    Result<std::string> get(const std::string& key, Deadline deadline) override {
        PCCL_TRY(operate(key));
        return store_->get(key, deadline);
    }
    Result<std::int64_t> add(const std::string& key, std::int64_t /*delta*/) override {
        return Status::internal("nobody counts: " + key);
    }
    Status remove(const std::string& key) override {
        PCCL_TRY(operate(key));
        return store_->remove(key);
    }

    std::function<void(const std::string& key)> before;  // each operation

   private:
    Status operate(const std::string& key) {
        if (before) before(key);
        return process_.left.fetch_sub(1) > 0 ? Status::ok() : Status::internal("killed");
    }

    const std::shared_ptr<Store> store_;
    Process& process_;
};

struct Met {
    GroupIdentity identity;
    Roster roster;
    std::uint64_t nonce = 0;
};

class IncarnationTest : public testing::Test {
   protected:
    /// What a process does that joins the group; `size` ranks are to be in it.
    Result<Met> join(Process& process, int size, const std::shared_ptr<StoreOfProcess>& store,
                     Duration request_timeout = kLong) {
        Endpoint endpoint;
        endpoint.rank = process.rank;
        endpoint.host = "node7";
        endpoint.pid = reinterpret_cast<std::int64_t>(&process);
        RendezvousContext rendezvous{
            .size = size,
            .deadline = Deadline::after(request_timeout),
            .pre_join = store,
            .contemporaries = std::make_shared<Contemporaries>("", began_ms_),
            .probe = [](const Endpoint& other) {
                return reinterpret_cast<const Process*>(other.pid)->is_alive()
                           ? Status::ok()
                           : Status::peer_lost(other.rank, "it has ended");
            }};
        PCCL_ASSIGN_OR_RETURN(const Announcement own, announcement_of(endpoint));
        PCCL_TRY(announce(*store, own));
        Incarnations incarnations(own, rendezvous);
        rendezvous.incarnation = &incarnations;
        for (;;) {
            PCCL_ASSIGN_OR_RETURN(const GroupIdentity identity,
                                  process.rank == 0 ? incarnations.open() : incarnations.next());
            auto met = exchange_roster(*incarnations.store(), own.endpoint, rendezvous);
            if (is_superseded(met.status())) continue;
            if (met.status().code() == StatusCode::kTimeout)
                return incarnations.timeout_cause(met.status());
            PCCL_TRY(met.status());
            PCCL_TRY(withdraw(*store, process.rank));
            incarnations.remove_remains();
            return Met{identity, *met, own.endpoint.nonce};
        }
    }
    Result<Met> join(Process& process, int size, Duration request_timeout = kLong) {
        return join(process, size, std::make_shared<StoreOfProcess>(store_, process),
                    request_timeout);
    }

    /// What ended processes left from now on counts no more.
    void begin_attempt() {
        // What comes after is younger by the clock, which counts milliseconds.
        for (const auto before = wall_clock_ms(); wall_clock_ms() < before + 2;)
            system_clock().sleep_for(std::chrono::milliseconds(1));
        began_ms_ = wall_clock_ms();
        system_clock().sleep_for(std::chrono::milliseconds(2));
    }

    Process& start(Rank rank, int operations = Process::kForEver) {
        processes_.push_back(std::make_unique<Process>(rank, operations));
        return *processes_.back();
    }

    /// One attempt in which nobody is killed.
    void expect_that_all_meet(int size) {
        std::vector<std::optional<Result<Met>>> met(static_cast<std::size_t>(size));
        std::vector<std::thread> threads;
        for (Rank rank = size - 1; rank >= 0; --rank) {
            Process& process = start(rank);
            threads.emplace_back(
                [&, rank] { met[static_cast<std::size_t>(rank)].emplace(join(process, size)); });
        }
        for (std::thread& thread : threads) thread.join();
        expect_one_group(met);
    }

    static void expect_one_group(const std::vector<std::optional<Result<Met>>>& met) {
        for (std::size_t rank = 0; rank < met.size(); ++rank) {
            ASSERT_TRUE(met[rank]->is_ok()) << rank << ": " << met[rank]->status().to_string();
            EXPECT_EQ((*met[rank])->identity.group, (*met[0])->identity.group);
            for (std::size_t other = 0; other < met.size(); ++other)
                EXPECT_EQ((*met[rank])->roster.endpoints[other].nonce, (*met[other])->nonce);
        }
    }

    std::int64_t began_ms_ = wall_clock_ms() - 1;
    std::shared_ptr<fakes::MemoryStore> store_ = std::make_shared<fakes::MemoryStore>();
    std::vector<std::unique_ptr<Process>> processes_;
};

TEST_F(IncarnationTest, GroupsOfOneNameComeAboutAgainAndAgain) {
    for (int turn = 0; turn < 10; ++turn) expect_that_all_meet(3);
    expect_that_all_meet(2);
    expect_that_all_meet(5);
}

TEST_F(IncarnationTest, WhoComesBeforeRankZeroPassesOverTheGroupThatMetBefore) {
    expect_that_all_meet(2);
    std::vector<std::optional<Result<Met>>> met(2);
    Process& early = start(1);
    const auto store = std::make_shared<StoreOfProcess>(store_, early);
    std::latch has_looked(2);  // twice
    store->before = [&, looks = 0](const std::string& key) mutable {
        if (key == "pccl/incarnation" && ++looks <= 2) has_looked.count_down();
    };
    std::thread other([&] { met[1].emplace(join(early, 2, store)); });
    has_looked.wait();
    met[0].emplace(join(start(0), 2));
    other.join();
    expect_one_group(met);
}

/// The server of an earlier group ends at any operation of a rank that reached it too early.
TEST_F(IncarnationTest, AStoreThatEndsDoesNotMakeAnEarlierGroupCount) {
    expect_that_all_meet(2);
    for (int operations = 0; operations < 4; ++operations) {
        Process& early = start(1, operations);
        const auto store = std::make_shared<StoreOfProcess>(store_, early);
        const RendezvousContext rendezvous{
            .size = 2,
            .deadline = Deadline::after(kLong),
            .pre_join = store,
            .contemporaries = std::make_shared<Contemporaries>("", began_ms_)};
        Endpoint endpoint;
        endpoint.rank = 1;
        const auto own = announcement_of(endpoint);
        ASSERT_TRUE(own.is_ok());
        Incarnations incarnations(*own, rendezvous);
        const auto next = incarnations.next();
        EXPECT_EQ(next.status().code(), StatusCode::kInternal) << operations;
        EXPECT_FALSE(incarnations.counts()) << operations;
    }
}

/// Rank 1 is slow to read the roster of the first group, while rank 0 is in the second already.
TEST_F(IncarnationTest, WhoIsSlowJoinsTheGroupThatHasItNotTheNext) {
    Process& slow = start(1);
    const auto store = std::make_shared<StoreOfProcess>(store_, slow);
    std::latch is_open(1);
    store->before = [&, requests = 0](const std::string& key) mutable {
        // It asks for it once before it answers.
        if (key.ends_with("/roster/0") && ++requests == 2) is_open.wait();
    };
    std::optional<Result<Met>> first;
    std::optional<Result<Met>> second;
    std::thread other([&] {
        first.emplace(join(slow, 2, store));
        second.emplace(join(slow, 2, store));
    });
    Process& root = start(0);
    const auto once = join(root, 2);
    const auto roots = std::make_shared<StoreOfProcess>(store_, root);
    roots->before = [&](const std::string& key) {
        if (key.ends_with("/endpoint/0")) is_open.count_down();
    };
    const auto twice = join(root, 2, roots);
    other.join();
    for (const Result<Met>* met : std::vector<const Result<Met>*>{&once, &twice, &*first, &*second})
        ASSERT_TRUE(met->is_ok()) << met->status().to_string();
    EXPECT_EQ((*first)->identity.group, once->identity.group);
    EXPECT_EQ((*second)->identity.group, twice->identity.group);
    EXPECT_NE(once->identity.group, twice->identity.group);
}

struct Kill {
    int ranks = 2;
    Rank victim = 0;
};

class KilledTest : public IncarnationTest, public testing::WithParamInterface<Kill> {
   protected:
    /// An attempt whose victim ends after so many operations; true when it got through before.
    bool fail_after(int operations) {
        std::vector<std::thread> threads;
        std::vector<Process*> attempt;
        bool victim_met = false;
        for (Rank rank = 0; rank < GetParam().ranks; ++rank)
            attempt.push_back(
                &start(rank, rank == GetParam().victim ? operations : Process::kForEver));
        for (Process* const process : attempt)
            threads.emplace_back([&, process] {
                const bool met = join(*process, GetParam().ranks).is_ok();
                if (process->rank == GetParam().victim) victim_met = met;
            });
        threads[static_cast<std::size_t>(GetParam().victim)].join();
        for (Process* const process : attempt) process->kill();
        for (std::thread& thread : threads)
            if (thread.joinable()) thread.join();
        begin_attempt();
        expect_that_all_meet(GetParam().ranks);
        return victim_met;
    }
};

/// At each step of its own.
TEST_P(KilledTest, TheNextAttemptComesAboutWhereverARankWasKilled) {
    int operations = 1;
    while (!fail_after(operations)) {
        ASSERT_FALSE(HasFailure()) << "killed after operation " << operations;
        ASSERT_LT(++operations, 100);
    }
    EXPECT_GT(operations, 3);
}

INSTANTIATE_TEST_SUITE_P(Ranks, KilledTest,
                         testing::Values(Kill{.victim = 0}, Kill{.victim = 1},
                                         Kill{.ranks = 3, .victim = 0},
                                         Kill{.ranks = 3, .victim = 2}),
                         [](const auto& of) {
                             return "Rank" + std::to_string(of.param.victim) + "Of" +
                                    std::to_string(of.param.ranks);
                         });

TEST_F(IncarnationTest, ARankThatEndsBesideThisOneIsLost) {
    Process& victim = start(1, 2);  // it announces itself, and looks once
    EXPECT_FALSE(join(victim, 2).is_ok());
    const auto met = join(start(0), 2);
    EXPECT_EQ(met.status().code(), StatusCode::kPeerLost);
    EXPECT_EQ(met.status().peer(), 1);
}

TEST_F(IncarnationTest, ARankThatEndedInAnEarlierAttemptIsWaitedFor) {
    EXPECT_FALSE(join(start(1, 2), 2).is_ok());
    begin_attempt();
    const auto met = join(start(0), 2, std::chrono::milliseconds(700));
    EXPECT_EQ(met.status().code(), StatusCode::kTimeout);
    EXPECT_EQ(met.status().peer(), 1);
}

TEST_F(IncarnationTest, TimeoutNamesTheEarlierGroup) {
    expect_that_all_meet(2);
    begin_attempt();
    const auto met = join(start(1), 2, std::chrono::milliseconds(300));
    EXPECT_EQ(met.status().code(), StatusCode::kTimeout);
    EXPECT_EQ(met.status().peer(), 0);
    EXPECT_THAT(met.status().message(), AllOf(HasSubstr("rank 0 has not joined"),
                                              HasSubstr("a group of 2 formed here before")));
}

TEST_F(IncarnationTest, AnotherRankZeroIsNamedToTheFirst) {
    Process& first = start(0);
    const auto store = std::make_shared<StoreOfProcess>(store_, first);
    std::latch is_open(1);
    store->before = [&, done = false](const std::string& key) mutable {
        if (key.ends_with("/endpoint/0") && !std::exchange(done, true)) is_open.count_down();
    };
    std::optional<Result<Met>> met;
    std::thread waiting([&] { met.emplace(join(first, 2, store)); });
    is_open.wait();
    static_cast<void>(join(start(0), 2, std::chrono::milliseconds(1)));
    waiting.join();
    EXPECT_EQ(met->status().code(), StatusCode::kMismatch);
    EXPECT_THAT(met->status().message(), HasSubstr("another process has joined as rank 0"));
}

TEST_F(IncarnationTest, GroupsOfDifferentSizesAreAMismatch) {
    Process& root = start(0);
    std::thread other([&] { static_cast<void>(join(root, 2, std::chrono::seconds(2))); });
    const auto met = join(start(1), 3);
    root.kill();
    other.join();
    EXPECT_EQ(met.status().code(), StatusCode::kMismatch);
    EXPECT_THAT(met.status().message(), HasSubstr("rank 0 made a group of 2 ranks"));
}

TEST_F(IncarnationTest, WhatStrangersPutThereDisturbsNobody) {
    for (const std::string value : {"", "7", "nonsense", "\xd6\xe9 and what follows is none"}) {
        for (const char* key : {"pccl/incarnation", "pccl/clean", "pccl/presence/0",
                                "pccl/presence/1", "pccl/presence/2", "pccl/failure", "failure"})
            ASSERT_TRUE(store_->set(key, value).is_ok());
        expect_that_all_meet(3);
    }
}

TEST_F(IncarnationTest, WhatAnEndedOneLeftIsRemoved) {
    Process& root = start(0);
    const auto store = std::make_shared<StoreOfProcess>(store_, root);
    std::vector<std::string> keys;
    store->before = [&](const std::string& key) {
        if (key.ends_with("/roster/0") || key.ends_with("/endpoint/0")) keys.push_back(key);
    };
    std::thread other([&] { EXPECT_TRUE(join(start(1), 2).is_ok()); });
    ASSERT_TRUE(join(root, 2, store).is_ok());
    other.join();
    ASSERT_EQ(keys.size(), 2U);
    const Deadline at_once = Deadline::after(Duration::zero());
    for (const std::string& key : keys) EXPECT_TRUE(store_->get(key, at_once).is_ok()) << key;
    expect_that_all_meet(2);
    for (const std::string& key : keys) EXPECT_FALSE(store_->get(key, at_once).is_ok()) << key;
}

TEST(IncarnationBytesTest, MalformedBytesAreRefusedAndWhatWasWrittenIsRead) {
    Incarnation written{.identity = fresh_identity().value(), .size = 3, .root = {}};
    written.root.endpoint.host = "node7";
    written.remains = {{.group = {1, 2}, .size = 9}};
    const std::string bytes = written.serialise();
    const auto read = Incarnation::deserialise(bytes);
    ASSERT_TRUE(read.is_ok()) << read.status().to_string();
    EXPECT_EQ(read->identity.group, written.identity.group);
    EXPECT_EQ(read->size, 3);
    EXPECT_EQ(read->root.endpoint, written.root.endpoint);
    EXPECT_EQ(read->remains, written.remains);
    for (std::size_t length = 0; length < bytes.size(); ++length)
        EXPECT_FALSE(Incarnation::deserialise(bytes.substr(0, length)).is_ok()) << length;
}

}  // namespace
}  // namespace pccl::bootstrap
