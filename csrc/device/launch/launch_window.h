// Which kernels of a process may be on a GPU at once.
//
// A kernel waits for its peers with its blocks resident: block b for theirs of that index. So
// kernels of three groups in three streams could hold each other up for ever, each with the
// multiprocessors of a GPU that another one lacks. Among those that may run at once here, all but
// the smallest therefore fit on the GPU together, with a multiprocessor to spare: the kernel that
// comes first in the order of launches, which is one on all ranks, then has one on every GPU, and
// goes on, block after block.
//
//     auto permit = window->begin({group, stream, blocks});    waits for nobody; the stream may
//     launch on `stream`
//     the end of `permit`
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// Safe from every thread.
class PCCL_API LaunchWindow : public std::enable_shared_from_this<LaunchWindow> {
   public:
    /// The process's one for `device`; each group there holds it, for groups are counted so.
    static Result<std::shared_ptr<LaunchWindow>> of(sys::cuda::Driver& driver, int device);
    ~LaunchWindow();
    LaunchWindow(const LaunchWindow&) = delete;
    LaunchWindow& operator=(const LaunchWindow&) = delete;

    /// Follows what the same group launched before, and what is in the same stream.
    struct Launch {
        const void* group = nullptr;
        sys::cuda::Stream stream = nullptr;
        int blocks = 0;
    };
    /// One launch; nobody else launches meanwhile.
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
    /// Lets its stream wait for what must not run beside the launch. What is captured is neither
    /// counted nor held up.
    Result<LaunchPermit> begin(const Launch& launch);

   private:
    /// Launches that follow one another.
    struct WindowSequence {
        Launch last;                     // but with the blocks of the largest
        sys::cuda::Event end = nullptr;  // of the last
    };
    using WindowSequences = std::vector<WindowSequence>;

    LaunchWindow(sys::cuda::Driver& driver, int multiprocessors)
        : driver_(driver), multiprocessors_(multiprocessors) {}
    [[nodiscard]] bool is_needed() const;
    void forget_finished();
    /// The sequence that `launch` follows anyway.
    WindowSequences::iterator sequence_of(const Launch& launch);
    /// Whether all sequences but the smallest leave a multiprocessor when `launch` ends `own`.
    [[nodiscard]] bool fits(const Launch& launch, WindowSequences::const_iterator own) const;
    /// From now on all launches follow all that were before.
    void begin_round();
    void end();
    void drop(sys::cuda::Event event) const;

    sys::cuda::Driver& driver_;
    const int multiprocessors_;
    std::mutex mutex_;                      // guards what follows
    WindowSequences sequences_;             // of this round; the last is that of the permit
    std::vector<sys::cuda::Event> before_;  // ends of the last round's sequences
};

}  // namespace pccl::device
