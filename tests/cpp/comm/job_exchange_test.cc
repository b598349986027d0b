// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/job_exchange.h"

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "csrc/bootstrap/layout.h"
#include "csrc/bootstrap/locality.h"
#include "csrc/comm/communicator.h"
#include "csrc/runtime/runtime.h"
#include "tests/cpp/comm/distant_hosts.h"
#include "tests/fakes/memory_store.h"

namespace pccl::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using transport::TransportKind;

/// A group of threads, each on the host that `places` says; `body` sees every rank's outcome.
void meet_at(const std::vector<Place>& places, const std::vector<int>& megabits,
             const std::function<void(Rank, Result<std::shared_ptr<CommunicatorImpl>>&)>& body) {
    const auto store = std::make_shared<fakes::MemoryStore>();
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < places.size(); ++i)
        threads.emplace_back([&, i] {
            auto runtime = runtime::Runtime::create(TransportKind::kTcp);
            ASSERT_TRUE(runtime.is_ok()) << runtime.status().to_string();
            auto comm =
                CommunicatorImpl::create({.rank = static_cast<Rank>(i),
                                          .size = static_cast<int>(places.size()),
                                          .store = store,
                                          .timeout = std::chrono::seconds(60),
                                          .runtime = *runtime,
                                          .locality = std::make_shared<const bootstrap::Locality>(
                                              locality_of(places[i], megabits[i]))});
            body(static_cast<Rank>(i), comm);
            if (comm.is_ok()) static_cast<void>((*comm)->barrier());
        });
    for (auto& thread : threads) thread.join();
}

TEST(JobExchangeTest, EveryRankHasTheSameJob) {
    std::mutex mutex;
    std::vector<std::string> jobs;
    meet_at({{0, 0}, {1, 0}, {0, 1}, {1, 1}}, {10'000, 25'000, 10'000, 25'000},
            [&](Rank rank, Result<std::shared_ptr<CommunicatorImpl>>& comm) {
                ASSERT_TRUE(comm.is_ok()) << comm.status().to_string();
                EXPECT_THAT((*comm)->links_counted_on().order, ElementsAre(0, 2, 1, 3));
                std::vector<float> data(1000, static_cast<float>(rank + 1));
                const Block block{reinterpret_cast<std::byte*>(data.data()), data.size()};
                EXPECT_TRUE((*comm)
                                ->run({.kind = CollectiveKind::kAllReduce,
                                       .type = DataType::kFloat32,
                                       .op = ReduceOp::kSum,
                                       .inputs = {&block, 1},
                                       .outputs = {&block, 1}})
                                .is_ok());
                EXPECT_EQ(data.back(), 10);
                const std::lock_guard lock(mutex);
                jobs.push_back(*(*comm)->describe_job());
            });
    ASSERT_THAT(jobs, SizeIs(4));
    for (const std::string& job : jobs) EXPECT_EQ(job, jobs.front());
    const auto job = topo::decode_job(jobs.front());
    ASSERT_TRUE(job.is_ok()) << job.status().to_string();
    ASSERT_THAT(job->hosts(), SizeIs(2));
    EXPECT_THAT(job->hosts()[1].ranks, ElementsAre(1, 3));
    EXPECT_EQ(job->network_bandwidth(1), 3.125);
    EXPECT_EQ(job->link_between(0, 1).bandwidth, 1.25) << "the slower end counts";
    EXPECT_TRUE(job->link_between(0, 1).same_subnet);
    EXPECT_EQ(job->warnings().front().name, "nic_sets_differ");
}

TEST(JobExchangeTest, ASmallerGroupKeepsItsHosts) {
    meet_at({{0, 0}, {1, 0}, {0, 0}, {1, 0}}, {10'000, 10'000, 10'000, 10'000},
            [&](Rank rank, Result<std::shared_ptr<CommunicatorImpl>>& comm) {
                ASSERT_TRUE(comm.is_ok()) << comm.status().to_string();
                if (rank == 0) return;
                const std::vector<Rank> gone{0};
                const auto rest = (*comm)->shrink(gone, {});
                ASSERT_TRUE(rest.is_ok()) << rest.status().to_string();
                EXPECT_THAT((*rest)->links_counted_on().order, ElementsAre(0, 2, 1));
                // Who leaves early would cut off those who still meet.
                EXPECT_TRUE((*rest)->barrier().is_ok());
            });
}

TEST(JobExchangeTest, NamesWhoFoundSomethingElse) {
    fakes::MemoryStore store;
    const bootstrap::RendezvousContext rendezvous{
        .size = 3, .deadline = Deadline::after(std::chrono::seconds(60))};
    std::thread second(
        [&] { static_cast<void>(bootstrap::agree_on_digest(store, "a", 1, rendezvous)); });
    std::thread third([&] {
        const Status reported = bootstrap::agree_on_digest(store, "b", 2, rendezvous);
        EXPECT_EQ(reported.code(), StatusCode::kMismatch);
    });
    const Status status = bootstrap::agree_on_digest(store, "a", 0, rendezvous);
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_EQ(status.peer(), 2);
    EXPECT_THAT(status.message(), HasSubstr("rank 2 found other channels than rank 0"));
    static_cast<void>(bootstrap::agree_on_failure(store, status, 0));
    second.join();
    third.join();
}

}  // namespace
}  // namespace pccl::comm
