// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/cpu/parallel_work.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

namespace pccl::sys {
namespace {

// A part takes long beside the claim of it, and short beside the time slice of a thread that is
// preempted within it.
constexpr std::size_t kLeastPart = std::size_t{128} << 10;
constexpr std::size_t kMostPart = std::size_t{1} << 20;
constexpr std::size_t kPartsOfWorker = 8;

std::size_t part_bytes(std::size_t bytes, int workers, std::size_t grain) {
    const std::size_t even = bytes / (static_cast<std::size_t>(workers) * kPartsOfWorker);
    const std::size_t part = std::clamp(even, kLeastPart, kMostPart);
    return (part + grain - 1) / grain * grain;
}

}  // namespace

Status ParallelWork::run_timed(std::size_t bytes, std::size_t grain, const AnyBody& body) {
    const int helpers = count_.next(bytes);
    const TimePoint begin = system_clock().now();
    Status status = helpers == 0
                        ? body({.worker = 0, .begin = 0, .bytes = bytes})
                        : share(helpers, bytes, part_bytes(bytes, helpers + 1, grain), body);
    count_.record(bytes, system_clock().now() - begin);
    return status;
}

Status ParallelWork::share(int helpers, std::size_t bytes, std::size_t part,
                           const AnyBody& body) const {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    Status failure;  // guarded by mutex
    HelperPool::of_process().run(helpers, cores_, [&](int worker) {
        for (std::size_t begin = next.fetch_add(part); begin < bytes;
             begin = next.fetch_add(part)) {
            Status status =
                body({.worker = worker, .begin = begin, .bytes = std::min(part, bytes - begin)});
            if (status.is_ok()) continue;
            next = bytes;
            const std::lock_guard lock(mutex);
            if (failure.is_ok()) failure = std::move(status);
        }
    });
    return failure;
}

}  // namespace pccl::sys
