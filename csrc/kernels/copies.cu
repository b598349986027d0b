// SPDX-License-Identifier: Apache-2.0
#include "csrc/kernels/copies.h"
#include "csrc/kernels/device/copy.cuh"
#include "csrc/kernels/device/waits.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;

constexpr int kMostUnits = kMostParameters / sizeof(Piece) - 1;  // as many as fit into a launch
constexpr int kUnitsPerBlock = 8;
// Bytes of a unit: enough for several loads of each thread, and few enough for a launch to fill
// NVLink.
constexpr std::size_t kUnitBytes = 16384;

struct Units {
    Piece at[kMostUnits];
    int count;
    bool is_first;  // of several launches, which do not wait for each other
};

/// Copies units, one for each warp.
__global__ void __launch_bounds__(kUnitsPerBlock* kWarpThreads)
    copy_units(const __grid_constant__ Units units) {
    // Only the first launch waits before it allows the next one. Later launches read data from
    // before all of them, and need not wait for it themselves.
    if (units.is_first) await_launch_ahead();
    allow_next_launch();
    const int index = static_cast<int>(blockIdx.x) * kUnitsPerBlock +
                      static_cast<int>(threadIdx.x) / kWarpThreads;
    if (index < units.count) {
        const Piece& unit = units.at[index];
        copy_bytes({threadIdx.x % kWarpThreads, kWarpThreads}, unit.from, unit.to, unit.bytes);
    }
    // The launches end in their order, so that the last one ends after all others.
    if (!units.is_first) await_launch_ahead();
}

LaunchPlan plan_of(int units) {
    return {.blocks = (units + kUnitsPerBlock - 1) / kUnitsPerBlock,
            .threads = kUnitsPerBlock * kWarpThreads};
}

/// Collects copies and launches them whenever a launch is full.
class Launches {
   public:
    explicit Launches(Stream stream) : stream_(stream) { units_.is_first = true; }

    Status add(const Piece& unit) {
        units_.at[units_.count++] = unit;
        return units_.count == kMostUnits ? flush() : Status::ok();
    }
    Status flush() {
        if (units_.count == 0) return Status::ok();
        const Status launched = launch_kernel(copy_units, units_, plan_of(units_.count), stream_);
        units_.count = 0;
        units_.is_first = false;
        return launched;
    }

   private:
    const Stream stream_;
    Units units_{};
};

}  // namespace

Status load_copies() { return launch_kernel(copy_units, Units{}, {.blocks = 0}, nullptr); }

Status launch_copies(std::span<const Piece> pieces, Stream stream) {
    Launches launches(stream);
    for (const Piece& piece : pieces)
        for (std::size_t at = 0; at < piece.bytes; at += kUnitBytes)
            PCCL_TRY(launches.add({.from = piece.from + at,
                                   .to = piece.to + at,
                                   .bytes = std::min(kUnitBytes, piece.bytes - at)}));
    return launches.flush();
}

}  // namespace pccl::kernels
