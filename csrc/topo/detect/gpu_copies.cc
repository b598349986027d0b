// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/detect/gpu_copies.h"

#include <algorithm>

#include <pccl/deadline.h>
#include "csrc/base/ids.h"
#include "csrc/base/scope_exit.h"

namespace pccl::topo {
namespace {

using sys::cuda::DeviceAddress;
using sys::cuda::Driver;

constexpr std::size_t kSmall = 8;
constexpr std::size_t kMiddle = 16 * kMiB;
constexpr std::size_t kLarge = 128 * kMiB;
constexpr int kCalls = 8;
constexpr int kSmallCalls = 200;

struct DevicePair {
    int owner = 0;
    int user = 0;
};

/// Allocates memory on one GPU and maps it for another.
Result<DeviceAddress> map_memory(Driver& driver, const DevicePair& place) {
    PCCL_TRY(driver.use(place.owner));
    PCCL_ASSIGN_OR_RETURN(const auto memory, driver.create(place.owner, kLarge));
    auto mapped = driver.map(memory, kLarge, place.user);
    // A mapping keeps the memory alive.
    PCCL_TRY(driver.release(memory));
    return mapped;
}

struct CopyPath {
    Driver& driver;
    DeviceAddress to;
    DeviceAddress from;
};

/// Returns seconds per copy; each of the copies is waited for.
Result<double> seconds(const CopyPath& way, std::size_t bytes, int calls) {
    const auto copy = [&] {
        PCCL_TRY(way.driver.copy(way.to, way.from, bytes, nullptr));
        return way.driver.wait(nullptr);
    };
    PCCL_TRY(copy());
    const TimePoint begun = system_clock().now();
    for (int call = 0; call < calls; ++call) PCCL_TRY(copy());
    return std::chrono::duration<double>(system_clock().now() - begun).count() / calls;
}

Result<LinkTimes> measure(Driver& driver, int from, int to) {
    const auto unmap = [&](DeviceAddress memory) {
        static_cast<void>(driver.unmap(memory, kLarge));
    };
    PCCL_ASSIGN_OR_RETURN(const DeviceAddress source, map_memory(driver, {from, from}));
    const ScopeExit unmap_source([&] { unmap(source); });
    PCCL_ASSIGN_OR_RETURN(const DeviceAddress target, map_memory(driver, {to, from}));
    const ScopeExit unmap_target([&] { unmap(target); });
    PCCL_TRY(driver.use(from));
    const CopyPath way{driver, target, source};
    PCCL_ASSIGN_OR_RETURN(const double small, seconds(way, kSmall, kSmallCalls));
    PCCL_ASSIGN_OR_RETURN(const double middle, seconds(way, kMiddle, kCalls));
    PCCL_ASSIGN_OR_RETURN(const double large, seconds(way, kLarge, kCalls));
    const double further = std::max(large - middle, 1e-9);
    return LinkTimes{.latency = small, .bandwidth = (kLarge - kMiddle) * 1e-9 / further};
}

}  // namespace

Result<std::vector<GpuCopy>> measure_gpu_copies(Driver& driver) {
    PCCL_ASSIGN_OR_RETURN(const std::vector<std::string> gpus, driver.bus_ids());
    std::vector<GpuCopy> copies;
    for (std::size_t from = 0; from < gpus.size(); ++from)
        for (std::size_t to = 0; to < gpus.size(); ++to) {
            if (from == to) continue;
            const auto times = measure(driver, static_cast<int>(from), static_cast<int>(to));
            const StatusCode code = times.status().code();
            if (code == StatusCode::kUnsupported || code == StatusCode::kUnavailable) continue;
            PCCL_TRY(times.status());
            copies.push_back({gpus[from], gpus[to], *times});
        }
    return copies;
}

Result<std::vector<GpuCopy>> measure_gpu_copies() {
    PCCL_ASSIGN_OR_RETURN(Driver* const driver, sys::cuda::process_driver());
    return measure_gpu_copies(*driver);
}

}  // namespace pccl::topo
