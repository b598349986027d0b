// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/fork.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace pccl {
namespace {

/// Returns a counter that grows in every child of fork(): cheaper to compare than getpid().
std::atomic<int>& forks_so_far() {
    static std::atomic<int> forks{0};
    static const int registered =
        ::pthread_atfork(nullptr, nullptr, [] { forks_so_far().fetch_add(1); });
    static_cast<void>(registered);
    return forks;
}

/// Mutexes that fork() holds. None is ever removed: they live as long as the process.
class HeldMutexes {
   public:
    static HeldMutexes& of_process() {
        static HeldMutexes held;
        static const int registered =
            ::pthread_atfork([] { of_process().lock(); }, [] { of_process().unlock(); },
                             [] { of_process().unlock(); });
        static_cast<void>(registered);
        return held;
    }

    void add(std::mutex& mutex) {
        const std::lock_guard lock(changing_);
        mutexes_.at(count_++) = &mutex;
    }

   private:
    void lock() {
        changing_.lock();
        for (std::size_t i = 0; i < count_; ++i) mutexes_[i]->lock();
    }
    void unlock() {
        for (std::size_t i = 0; i < count_; ++i) mutexes_[i]->unlock();
        changing_.unlock();
    }

    std::mutex changing_;  // held during fork(), too
    std::array<std::mutex*, 8> mutexes_{};
    std::size_t count_ = 0;
};

}  // namespace

ForkMark::ForkMark() : forks_(forks_so_far().load()) {}

bool ForkMark::is_child() const { return forks_so_far().load(std::memory_order_relaxed) != forks_; }

void hold_while_forking(std::mutex& mutex) { HeldMutexes::of_process().add(mutex); }

}  // namespace pccl
