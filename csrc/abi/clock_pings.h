// What host and GPU tell each other to compare their clocks, in host memory that kernels see.
#pragma once

#include <cstdint>

namespace pccl::abi {

inline constexpr std::uint32_t kClockPings = 32;

/// The GPU answers each question, which are numbered from 1 on.
struct ClockPings {
    std::uint32_t asked;     // by the host: the number of its last question
    std::uint32_t answered;  // by the GPU
    std::uint64_t gpu_ns;    // its global timer, when it answered that
};

}  // namespace pccl::abi
