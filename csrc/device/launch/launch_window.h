// SPDX-License-Identifier: Apache-2.0

// Window of kernels of one process that may be on a GPU at once.
//
// A kernel waits for its peers while its blocks are resident: block b waits for the peers' blocks
// b. Kernels of three groups in three streams could therefore deadlock, each with multiprocessors
// that another one needs on some GPU. To prevent that, all kernels that may run at once here,
// except the smallest, fit on the GPU together with a multiprocessor to spare. The first kernel in
// launch order, which is the same on all ranks, then has a multiprocessor on every GPU and advances
// block after block.
//
//     auto permit = window->begin({group, stream, blocks});    waits for nobody; the stream may
//     launch on `stream`
//     the end of `permit`
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <pccl/export.h>
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// Thread-safe.
class PCCL_API LaunchWindow : public std::enable_shared_from_this<LaunchWindow> {
   public:
    /// Returns the process's window for `device`. Each group on the device holds it, which counts
    /// the groups.
    static Result<std::shared_ptr<LaunchWindow>> of(sys::cuda::Driver& driver, int device);
    ~LaunchWindow();
    LaunchWindow(const LaunchWindow&) = delete;
    LaunchWindow& operator=(const LaunchWindow&) = delete;

    /// A launch. It follows earlier launches of its group, and those in its stream.
    struct PendingLaunch {
        const void* group = nullptr;
        sys::cuda::Stream stream = nullptr;
        int blocks = 0;
    };
    /// Permit for one launch. Until its end this process begins no other launch on the device,
    /// except where no limit applies: few groups, or a capture.
    class LaunchPermit {
       public:
        LaunchPermit() = default;
        LaunchPermit(LaunchWindow& window, std::unique_lock<std::mutex> lock)
            : window_(&window), lock_(std::move(lock)) {}
        LaunchPermit(LaunchPermit&& other) noexcept
            : window_(std::exchange(other.window_, nullptr)), lock_(std::move(other.lock_)) {}
        LaunchPermit(const LaunchPermit&) = delete;
        LaunchPermit& operator=(const LaunchPermit&) = delete;
        LaunchPermit& operator=(LaunchPermit&&) = delete;
        ~LaunchPermit() {
            if (window_ != nullptr) window_->end();
        }

       private:
        LaunchWindow* window_ = nullptr;
        std::unique_lock<std::mutex> lock_;
    };
    /// Lets the stream of `launch` wait for kernels that must not run beside it. Captured launches
    /// are neither counted nor delayed.
    Result<LaunchPermit> begin(const PendingLaunch& launch);

   private:
    /// Launches that follow one another.
    struct WindowSequence {
        PendingLaunch last;              // but with the blocks of the largest
        sys::cuda::Event end = nullptr;  // of the last
    };
    using WindowSequences = std::vector<WindowSequence>;

    LaunchWindow(sys::cuda::Driver& driver, int multiprocessors)
        : driver_(driver), multiprocessors_(multiprocessors) {}
    [[nodiscard]] bool is_needed() const;
    void forget_finished();
    /// Returns the sequence that `launch` follows anyway.
    WindowSequences::iterator sequence_of(const PendingLaunch& launch);
    /// Returns whether all sequences but the smallest leave a multiprocessor free when `launch`
    /// ends `own`.
    [[nodiscard]] bool fits(const PendingLaunch& launch, WindowSequences::const_iterator own) const;
    /// Makes all later launches follow all earlier ones.
    void begin_round();
    void end();
    void drop(sys::cuda::Event event) const;

    sys::cuda::Driver& driver_;
    const int multiprocessors_;
    std::mutex mutex_;                      // guards the following members
    WindowSequences sequences_;             // of this round; the last is that of the permit
    std::vector<sys::cuda::Event> before_;  // ends of the last round's sequences
};

}  // namespace pccl::device
