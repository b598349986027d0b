// SPDX-License-Identifier: Apache-2.0

// Kernels on heaps that tests prepare, without a group.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <thread>

#include "csrc/abi/device_team.h"

namespace pccl::kernels {

/// Ranks whose GPUs see all memory at one address.
class BareRanks {
   public:
    explicit BareRanks(int size) : size_(size) {
        for (auto& heap : heaps_) heap = std::make_unique<abi::Heap>();
    }

    [[nodiscard]] abi::Heap& heap(int rank) { return *heaps_.at(static_cast<std::size_t>(rank)); }
    [[nodiscard]] bool has_given_up(int rank) const {
        return controls_.at(static_cast<std::size_t>(rank)).has_given_up != 0;
    }
    [[nodiscard]] abi::DeviceTeam team(int rank) {
        abi::DeviceTeam team{};
        team.rank = rank;
        team.size = size_;
        team.timeout_ns = std::uint64_t{20'000'000'000};
        team.control = &controls_.at(static_cast<std::size_t>(rank));
        for (int peer = 0; peer < size_; ++peer) team.heaps[peer] = &heap(peer);
        return team;
    }

   private:
    const int size_;
    std::array<std::unique_ptr<abi::Heap>, abi::kMostDevices> heaps_;
    std::array<abi::DeviceControl, abi::kMostDevices> controls_{};
};

/// Of a pair.
template <typename Body>
void on_both_ranks(Body body) {
    std::thread other([&body] { body(1); });
    body(0);
    other.join();
}

}  // namespace pccl::kernels
