// SPDX-License-Identifier: Apache-2.0

// Groups of GPUs in threads, and calls of them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "csrc/device/device_group.h"
#include "tests/fakes/fake_cuda.h"
#include "tests/fakes/memory_store.h"

namespace pccl::device {

using fakes::FakeCudaDriver;
using fakes::FakeGpus;
using fakes::MemoryStore;
using std::chrono::milliseconds;

inline Block block_of(std::span<const float> values) {
    return {std::bit_cast<std::byte*>(values.data()), values.size()};
}

/// Threads that make groups of three; those that come at all.
class RendezvousTest : public ::testing::Test {
   public:
    void come(Rank rank, std::function<Status()> interrupted = Status::ok) {
        ranks_.emplace_back([this, rank, interrupted = std::move(interrupted)] {
            FakeCudaDriver driver(gpus_);
            made_[static_cast<std::size_t>(rank)] =
                create_interruptibly({.rank = rank,
                                      .size = 3,
                                      .store = store_,
                                      .device = rank,
                                      .timeout = std::chrono::minutes(10),
                                      .driver = &driver},
                                     interrupted)
                    .status();
        });
    }
    const Status& outcome(Rank rank) {
        for (std::thread& thread : ranks_)
            if (thread.joinable()) thread.join();
        return made_[static_cast<std::size_t>(rank)];
    }

   private:
    const std::shared_ptr<FakeGpus> gpus_ = std::make_shared<FakeGpus>();
    const std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
    std::array<Status, 3> made_;
    std::vector<std::thread> ranks_;
};

using MadeGroup = Result<std::unique_ptr<DeviceGroupImpl>>;
using PrepareRank = std::function<void(DeviceGroupImplOptions&, FakeCudaDriver&)>;

/// Calls look(rank, group) on each of `size` ranks, whose options and drivers `prepare` changes.
inline void with_groups(int size, const PrepareRank& prepare,
                        const std::function<void(std::size_t, MadeGroup&)>& look) {
    const auto gpus = std::make_shared<FakeGpus>();
    const auto store = std::make_shared<MemoryStore>();
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            FakeCudaDriver driver(gpus);
            DeviceGroupImplOptions options{.rank = rank,
                                           .size = size,
                                           .store = store,
                                           .device = rank,
                                           .timeout = milliseconds(20'000),
                                           .driver = &driver};
            prepare(options, driver);
            MadeGroup group = DeviceGroupImpl::create(options);
            look(static_cast<std::size_t>(rank), group);
        });
    }
    for (std::thread& thread : threads) thread.join();
}

/// What create() says on each of them.
inline std::vector<Status> outcomes(int size, const PrepareRank& prepare) {
    std::vector<Status> found(static_cast<std::size_t>(size));
    with_groups(size, prepare,
                [&](std::size_t rank, const MadeGroup& group) { found[rank] = group.status(); });
    return found;
}

}  // namespace pccl::device
