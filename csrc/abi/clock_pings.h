// SPDX-License-Identifier: Apache-2.0

// Clock questions and answers between the host and a GPU, in host memory that kernels can access.
// The host uses them to compare the two clocks.
#pragma once

#include <cstdint>

namespace pccl::abi {

inline constexpr std::uint32_t kClockPings = 32;

/// One slot of the exchange. The host numbers its questions from 1; the GPU answers each of them.
struct ClockPings {
    std::uint32_t requested;  // number of the host's last question
    std::uint32_t answered;   // number of the question that the GPU answered last
    std::uint64_t gpu_ns;     // the GPU's global timer at that answer, in ns
};

}  // namespace pccl::abi
