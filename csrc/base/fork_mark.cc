#include "csrc/base/fork_mark.h"

#include <pthread.h>

#include <atomic>

namespace pccl {
namespace {

/// Grows in every child of fork(): cheaper to compare than getpid().
std::atomic<int>& forks_so_far() {
    static std::atomic<int> forks{0};
    static const int registered =
        ::pthread_atfork(nullptr, nullptr, [] { forks_so_far().fetch_add(1); });
    static_cast<void>(registered);
    return forks;
}

}  // namespace

ForkMark::ForkMark() : forks_(forks_so_far().load()) {}

bool ForkMark::is_child() const { return forks_so_far().load(std::memory_order_relaxed) != forks_; }

}  // namespace pccl
