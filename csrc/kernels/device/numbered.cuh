// Lines between two ranks, and how a block waits for one.
#pragma once

#include "csrc/abi/device_team.h"
#include "csrc/kernels/device/ptx.cuh"
#include "csrc/kernels/device/waits.cuh"

namespace pccl::kernels::device {

/// Lines that carry one number: that of an epoch, or of a message.
class Numbered {
   public:
    /// Messages have no fingerprint.
    __device__ Numbered(const abi::DeviceTeam& team, std::uint32_t number,
                        std::uint32_t fingerprint = 0)
        : team_(team), number_(number), fingerprint_(fingerprint) {}

    [[nodiscard]] __device__ std::uint32_t number() const { return number_; }
    [[nodiscard]] __device__ abi::Line line_of(std::uint64_t data) const {
        return {static_cast<std::uint32_t>(data), number_, static_cast<std::uint32_t>(data >> 32),
                number_ ^ fingerprint_};
    }
    [[nodiscard]] __device__ bool is_here(const abi::Line& line) const {
        return line.low_epoch == number_ && (line.high_epoch ^ fingerprint_) == number_;
    }
    static __device__ std::uint64_t data_of(const abi::Line& line) {
        return line.low | static_cast<std::uint64_t>(line.high) << 32;
    }

    /// What `peer` says in both lines of `greeting`. False when it gave up.
    struct Said {
        std::uint64_t input;
        std::uint64_t output;
    };
    __device__ bool await(const abi::Greeting* greeting, abi::DevicePhase phase, int peer,
                          Said& said) const {
        return await(&greeting->input, phase, peer, said.input) &&
               await(&greeting->output, phase, peer, said.output);
    }
    /// What `peer` says in one line.
    __device__ bool await(const abi::Line* at, abi::DevicePhase phase, int peer,
                          std::uint64_t& data) const {
        abi::Line line = load_line(at);
        if (!is_here(line)) {
            Patience patience(team_);
            for (; !is_here(line); line = load_line(at)) {
                if (!patience.is_over(phase, peer)) continue;
                patience.give_up({phase, peer, number_, line.low_epoch});
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
