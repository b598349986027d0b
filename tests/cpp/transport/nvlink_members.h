// SPDX-License-Identifier: Apache-2.0

// Ranks in threads whose GPUs reach each other by NVLink, on a fake driver.
#pragma once

#include <gtest/gtest.h>

#include <barrier>
#include <bit>
#include <thread>

#include "csrc/transport/nvlink/symmetric_heap.h"
#include "tests/fakes/deadlines.h"
#include "tests/fakes/fake_cuda.h"

namespace pccl::transport::nvlink {

using fakes::FakeCudaDriver;
using fakes::FakeGpus;
using fakes::test_deadline;

/// One rank, as a test sees it.
struct Member {
    Rank rank;
    FakeCudaDriver& driver;
    PeerSockets& sockets;
    std::barrier<>& together;
};

inline Result<std::unique_ptr<PeerSockets>> listen(Rank rank, int size, std::uint8_t secret = 7) {
    PeerSocketsOptions options{.rank = rank, .size = size};
    options.secret.fill(secret);
    return PeerSockets::listen(options);
}

inline void run(int size, const std::function<void(Member&)>& body) {
    const auto gpus = std::make_shared<FakeGpus>();
    std::vector<std::unique_ptr<PeerSockets>> sockets;
    std::vector<std::string> addresses;
    for (Rank rank = 0; rank < size; ++rank) {
        auto listening = listen(rank, size);
        ASSERT_TRUE(listening.is_ok()) << listening.status().to_string();
        sockets.push_back(std::move(*listening));
        addresses.push_back(sockets.back()->address());
    }
    std::barrier together(size);
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            FakeCudaDriver driver(gpus);
            auto& own = sockets[static_cast<std::size_t>(rank)];
            const Status connected = own->connect(addresses, test_deadline());
            ASSERT_TRUE(connected.is_ok()) << connected.to_string();
            Member member{rank, driver, *own, together};
            body(member);
        });
    }
    for (std::thread& thread : threads) thread.join();
}

inline std::uint64_t& word_at(sys::cuda::DeviceAddress address) {
    return *std::bit_cast<std::uint64_t*>(address);
}

inline Result<std::unique_ptr<SymmetricHeap>> heap_of(Member& member, std::size_t bytes) {
    return SymmetricHeap::create({.driver = member.driver, .bytes = bytes}, member.sockets,
                                 test_deadline());
}

}  // namespace pccl::transport::nvlink
