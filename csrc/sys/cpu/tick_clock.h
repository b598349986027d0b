// SPDX-License-Identifier: Apache-2.0

// Clock for frequent timing: a counter of the CPU, which takes some 8 ns to read where Clock::now()
// takes 25 ns.
#pragma once

#include <cstdint>

#include <pccl/deadline.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace pccl {

/// Fast clock with the time of system_clock(), computed from a counter that has run at one rate
/// since refresh(): off by up to some 10 ns for each millisecond since then. Where the machine has
/// no such counter it is system_clock() itself. One thread at a time.
class PCCL_API TickClock {
   public:
    /// Measures the counter's rate, once in a process: this takes 5 ms, which the first refresh()
    /// would take otherwise.
    static void find_rate();

    /// Reads the time of system_clock(), unless it did so within 50 ms.
    void refresh();
    /// Returns the time; refresh() must come first.
    [[nodiscard]] TimePoint now() const {
        if (ns_per_tick_ == 0) return system_clock().now();
        const auto passed = static_cast<std::int64_t>(ticks() - set_.ticks);
        return set_.time +
               Duration(static_cast<Duration::rep>(static_cast<double>(passed) * ns_per_tick_));
    }

   private:
    /// Simultaneous readings of both.
    struct Moment {
        TimePoint time{};
        std::uint64_t ticks = 0;
    };

    static std::uint64_t ticks() {
#if defined(__x86_64__)
        return __rdtsc();
#else
        return 0;
#endif
    }
    static Moment moment();
    static double measured_ns_per_tick();
    static double ns_per_tick();

    Moment set_;
    double ns_per_tick_ = 0;  // 0: no usable counter
};

}  // namespace pccl
