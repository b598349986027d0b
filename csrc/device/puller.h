// Collectives that copy engines do, while all multiprocessors are free for others.
//
// Each rank pulls what it gets, block by block, between two small kernels in the same stream. A
// copy's addresses are those that hints name. The second kernel compares them with what the peers
// say in this very launch, and does itself what was pulled from elsewhere: a hint can be wrong, a
// result cannot.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "csrc/device/hints.h"
#include "csrc/kernels/launch.h"
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

class PCCL_API Puller {
   public:
    struct Options {
        sys::cuda::Driver& driver;
        int device = 0;
        std::span<abi::Hint, abi::kMostHints> hints;
        /// Whether a copy engine may read there.
        std::function<bool(sys::cuda::DeviceAddress, std::size_t bytes)> is_mapped;
    };
    explicit Puller(const Options& options) : options_(options), hints_(options.hints) {}
    ~Puller();
    Puller(const Puller&) = delete;
    Puller& operator=(const Puller&) = delete;

    /// In stream order. `own` is the block that this rank gives itself; `pull` says all but what
    /// is pulled and the hint.
    Status launch(kernels::Pull& pull, schedule::CollectiveKind kind, const std::byte* own,
                  kernels::Stream stream);
    /// What launch() pulls from where, and the hint that its kernels leave.
    void follow_hints(kernels::Pull& pull, schedule::CollectiveKind kind, const std::byte* own);

   private:
    Status copy(const kernels::Pull& pull, int peer, kernels::Stream stream);
    Status copy_own(const kernels::Pull& pull, kernels::Stream stream);

    const Options options_;
    Hints hints_;
    std::optional<kernels::Stream> side_;  // for the own block
};

}  // namespace pccl::device
