// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/unique_fd.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pccl {
namespace {

/// The descriptors that UniqueFds hold. It has no lock: fork() may come at any moment.
class HeldNumbers {
   public:
    static HeldNumbers& of_process() {
        static HeldNumbers held;
        static const int registered =
            ::pthread_atfork(nullptr, nullptr, [] { of_process().replace_all(); });
        static_cast<void>(registered);
        return held;
    }

    void add(int fd) {
        if (fd < 0 || fd >= kMost) return;
        word_of(fd).fetch_or(bit_of(fd), std::memory_order_relaxed);
        int end = end_.load(std::memory_order_relaxed);
        while (end <= fd && !end_.compare_exchange_weak(end, fd + 1)) continue;
    }
    void remove(int fd) {
        if (fd >= 0 && fd < kMost) word_of(fd).fetch_and(~bit_of(fd), std::memory_order_relaxed);
    }

   private:
    static constexpr int kMost = 1 << 20;  // default of fs.nr_open
    static constexpr int kBits = 64;
    using Word = std::atomic<std::uint64_t>;

    Word& word_of(int fd) { return words_[static_cast<std::size_t>(fd / kBits)]; }
    static std::uint64_t bit_of(int fd) { return std::uint64_t{1} << (fd % kBits); }
    [[nodiscard]] bool has(int fd) {
        return (word_of(fd).load(std::memory_order_relaxed) & bit_of(fd)) != 0;
    }
    /// Returns the first descriptor from `fd` on, or end_.
    int next(int fd) {
        while (fd < end_ && !has(fd)) ++fd;
        return fd;
    }

    /// Replaces all descriptors in the child, which has one thread. Later descriptors are the
    /// child's own.
    void replace_all() {
        const int first = next(0);
        if (first == end_) return;
        ::close(first);  // makes room for one, at any limit
        const int nothing = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        for (int fd = first; fd < end_; fd = next(fd + 1)) {
            // Numbers beyond a limit that was lowered meanwhile can only be closed.
            if (fd != nothing && ::dup3(nothing, fd, O_CLOEXEC) < 0) ::close(fd);
            remove(fd);
        }
        if (nothing != first) ::close(nothing);
    }

    std::array<Word, kMost / kBits> words_{};
    std::atomic<int> end_{0};  // one above the highest so far
};

}  // namespace

void UniqueFd::take(int fd) {
    HeldNumbers::of_process().add(fd);
    fd_ = fd;
}

int UniqueFd::release() {
    HeldNumbers::of_process().remove(fd_);
    return std::exchange(fd_, -1);
}

void UniqueFd::reset(int fd) {
    // Removed before close(): another thread may get the number at once.
    if (const int held = release(); held >= 0) ::close(held);
    take(fd);
}

}  // namespace pccl
