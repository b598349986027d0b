// SPDX-License-Identifier: Apache-2.0

// Numbered lines between two ranks, and a block's wait for one.
#pragma once

#include "csrc/abi/device_team.h"
#include "csrc/kernels/device/ptx.cuh"
#include "csrc/kernels/device/waits.cuh"

namespace pccl::kernels::device {

/// Lines that carry one number: that of an epoch, or of a message.
class Numbered {
   public:
    /// Constructs it; messages have no fingerprint.
    __device__ Numbered(const abi::DeviceTeam& team, std::uint32_t number,
                        std::uint32_t fingerprint = 0)
        : team_(team), number_(number), fingerprint_(fingerprint) {}

    [[nodiscard]] __device__ std::uint32_t number() const { return number_; }
    [[nodiscard]] __device__ abi::LLLine line_of(std::uint64_t data) const {
        return {static_cast<std::uint32_t>(data), number_, static_cast<std::uint32_t>(data >> 32),
                number_ ^ fingerprint_};
    }
    [[nodiscard]] __device__ bool is_here(const abi::LLLine& line) const {
        return line.low_epoch == number_ && (line.high_epoch ^ fingerprint_) == number_;
    }
    static __device__ std::uint64_t data_of(const abi::LLLine& line) {
        return line.low | static_cast<std::uint64_t>(line.high) << 32;
    }

    /// Data of the two lines of an entry.
    struct EntryData {
        std::uint64_t input;
        std::uint64_t output;
    };
    /// Waits for both lines of `entry` from `peer`. False when the wait gave up.
    __device__ bool await(const abi::EntryLines* entry, abi::DevicePhase phase, int peer,
                          EntryData& entry_data) const {
        return await(&entry->input, phase, peer, entry_data.input) &&
               await(&entry->output, phase, peer, entry_data.output);
    }
    /// Waits for one line from `peer`.
    __device__ bool await(const abi::LLLine* at, abi::DevicePhase phase, int peer,
                          std::uint64_t& data) const {
        abi::LLLine line = load_line(at);
        if (!is_here(line)) {
            WaitDeadline deadline(team_);
            for (; !is_here(line); line = load_line(at)) {
                if (!deadline.is_over(phase, peer)) continue;
                deadline.give_up({phase, peer, number_, line.low_epoch});
                return false;
            }
        }
        data = data_of(line);
        return true;
    }

   private:
    const abi::DeviceTeam& team_;
    std::uint32_t number_;
    std::uint32_t fingerprint_;
};

}  // namespace pccl::kernels::device
