// SPDX-License-Identifier: Apache-2.0

// What waiting by spinning and yielding takes away here.
//
// A thread that spins or yields is charged for the time. Beside other processes, the kernel gives
// it that much less afterwards, while a sleeper is preferred when it wakes; a yield gives a core
// away for a whole time slice, or to nobody where others are in another control group; under a CPU
// quota, the time is missing for the work of all ranks. On cores that nobody else wants it costs
// nothing, and saves the wake-up.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include <pccl/deadline.h>
#include <pccl/export.h>
#include "csrc/sys/cgroup.h"

namespace pccl::transport {

/// What a thread got of its cores in a while.
struct CoreUse {
    Duration ran{};
    Duration queued{};         // runnable, while other threads had the core
    bool was_stopped = false;  // by a CPU quota, this thread or others of its control group
    int ranks_on_core = 1;
};

/// Decides whether waits should sleep early, from one look to the next. Cores are contended if this
/// thread queued for much of its time, although no rank shares its core, or if a quota stopped it.
/// They count as contended for a while after that, since early sleeps hide what spinning would
/// cost, and for longer each time that the next attempt to spin fails.
class PCCL_API Contention {
   public:
    static constexpr Duration kLeastHold = std::chrono::milliseconds(500);
    static constexpr Duration kMostHold = std::chrono::seconds(16);

    void note(TimePoint now, const CoreUse& use);
    /// Lets the cores count as contended from now on, for a while.
    void hold(TimePoint now);
    [[nodiscard]] bool is_contended() const { return is_contended_; }

   private:
    bool is_contended_ = false;
    Duration hold_ = kLeastHold;
    TimePoint until_{};
};

/// Looks at the cores of this process from time to time, on the threads that wait. Thread-safe.
class PCCL_API ContentionWatch {
   public:
    static constexpr Duration kBetweenLooks = std::chrono::milliseconds(20);
    static constexpr Duration kBetweenQuotas = std::chrono::seconds(5);

    /// `root` is the folder that contains proc and sys, for quotas.
    explicit ContentionWatch(std::string root = "/");

    /// Looks, if the calling thread has not done so for kBetweenLooks. `processes` wait for each
    /// other here, of which at most `ranks_on_core` share a core.
    void look(TimePoint now, std::uint32_t processes, int ranks_on_core);
    /// Counts a yield after which other threads had the core for `lost`, where no rank shares it.
    void note_yield(TimePoint now, Duration lost);
    [[nodiscard]] bool is_contended() const {
        return is_contended_.load(std::memory_order_relaxed);
    }

   private:
    bool was_stopped(TimePoint now, std::uint32_t processes);
    void read_quota(TimePoint now, std::uint32_t processes);

    const std::string root_;
    std::atomic<bool> is_contended_{false};
    std::mutex mutex_;  // of all below
    Contention contention_;
    sys::CpuGroups groups_;
    double quota_ = 0;  // 0: not read yet
    TimePoint quota_read_{};
    std::uint64_t throttled_ = 0;
    int long_yields_ = 0;
    TimePoint first_long_yield_{};
};

}  // namespace pccl::transport
