// SPDX-License-Identifier: Apache-2.0

// A group that is destroyed while kernels of it run: these use its memory to their end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "tests/cpp/emulated/cases.h"
#include "tests/fakes/memory_store.h"

namespace pccl::comm {
namespace {

using fakes::FakeCudaDriver;
using ::testing::HasSubstr;

/// Two ranks that have launched something, and are destroyed one by one.
class EmulatedEndingTest : public ::testing::Test {
   protected:
    EmulatedEndingTest() {
        std::vector<std::thread> ranks;
        for (const Rank rank : {0, 1}) ranks.emplace_back([this, rank] { begin(rank); });
        for (std::thread& rank : ranks) rank.join();
    }

    std::unique_ptr<device::DeviceGroupImpl>& group(Rank rank) {
        return groups_.at(static_cast<std::size_t>(rank));
    }
    FakeCudaDriver& driver(Rank rank) { return *drivers_.at(static_cast<std::size_t>(rank)); }
    abi::DeviceControl& control(Rank rank) {
        return *static_cast<abi::DeviceControl*>(driver(rank).host_memory());
    }

   private:
    void begin(Rank rank) {
        auto made = device::DeviceGroupImpl::create({.rank = rank,
                                                     .size = 2,
                                                     .store = store_,
                                                     .device = rank,
                                                     .timeout = std::chrono::seconds(20),
                                                     .driver = &driver(rank)});
        ASSERT_TRUE(made.is_ok()) << made.status().to_string();
        group(rank) = std::move(*made);
        fakes::DeviceRank member{*group(rank), driver(rank), alone_};
        const Case call{};
        ASSERT_TRUE(CaseRun(call, member).launch().is_ok());
    }

    const std::shared_ptr<fakes::MemoryStore> store_ = std::make_shared<fakes::MemoryStore>();
    /// Never destroyed, and never out of reach: what is kept for good may be theirs.
    FakeCudaDriver* make_driver() {
        static auto& all = *new std::deque<FakeCudaDriver>;
        return &all.emplace_back(gpus_);
    }

    const std::shared_ptr<fakes::FakeGpus> gpus_ = std::make_shared<fakes::FakeGpus>();
    const std::array<FakeCudaDriver*, 2> drivers_{make_driver(), make_driver()};
    std::array<std::unique_ptr<device::DeviceGroupImpl>, 2> groups_;
    std::barrier<> alone_{1};
};

TEST_F(EmulatedEndingTest, MemoryStaysUntilTheKernelsHaveEnded) {
    int looks = 0;
    driver(0).require_events([&] {
        EXPECT_EQ(driver(0).open_mappings(), 2) << "the heaps of both ranks";
        return ++looks > 5;
    });
    group(0).reset();
    EXPECT_EQ(looks, 6);
    EXPECT_EQ(driver(0).open_mappings(), 0);
}

TEST_F(EmulatedEndingTest, AWaitingKernelIsEnded) {
    std::atomic<bool> has_waited = false;
    driver(0).require_events([&] {
        EXPECT_EQ(driver(0).open_mappings(), 2);
        const bool is_notified = std::atomic_ref(control(0).abort).load() != 0;
        if (!is_notified) has_waited = true;
        return is_notified;
    });
    group(0).reset();
    EXPECT_TRUE(has_waited);
    EXPECT_EQ(driver(0).open_mappings(), 0);
    while (group(1)->health().is_ok()) std::this_thread::yield();
    EXPECT_EQ(group(1)->health().code(), StatusCode::kPeerLost);
    EXPECT_THAT(group(1)->health().message(),
                HasSubstr("destroyed while one of its kernels waited"));
}

/// Behind another kernel in its stream, say, that waits for ever.
TEST_F(EmulatedEndingTest, MemoryOfAKernelThatDoesNotEndIsKept) {
    driver(0).require_events([] { return false; });
    group(0).reset();
    EXPECT_EQ(driver(0).open_mappings(), 2);
}

}  // namespace
}  // namespace pccl::comm
