// How an idle process sleeps, and how its peers wake it.
//
// A waiting thread spins for a moment, yields a bounded number of times, then sleeps: on a futex
// while all its links are shared memory, on epoll as soon as sockets are among them. A Doorbell is
// a page of shared memory in which a process says whether and how it sleeps; peers on the same host
// map it and ring it. Ringing a process that is awake costs one fence and one load.
//
// Waiting is an event count (D. Vyukov): ticket = prepare(); look once more; then sleep(ticket).
// Anything that arrives after prepare() ends the sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace pccl::transport {

/// Lives in shared memory; zero-filled is its valid first state.
struct DoorbellPage {
    alignas(kCacheLine) std::atomic<std::uint32_t> sleepers;  // threads asleep or about to be
    std::atomic<std::uint32_t> epoll_sleepers;                // of these, in epoll
    alignas(kCacheLine) std::atomic<std::uint32_t> sequence;  // futex word; grows with every ring
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// A peer's doorbell, mapped. Ringing may come from any thread.
class PCCL_API RemoteDoorbell {
   public:
    static Result<std::unique_ptr<RemoteDoorbell>> map(int memfd);
    ~RemoteDoorbell();
    RemoteDoorbell(const RemoteDoorbell&) = delete;
    RemoteDoorbell& operator=(const RemoteDoorbell&) = delete;

    /// To be called after the store that the peer waits for. Returns true when the peer sleeps in
    /// epoll and must be sent a byte through a socket that it watches.
    [[nodiscard]] bool ring();

   private:
    explicit RemoteDoorbell(DoorbellPage* page) : page_(page) {}
    DoorbellPage* page_;
};

/// Whether a watched descriptor makes threads sleep in epoll, or ends only the sleeps that are
/// there anyway.
enum class Watch : bool { kSocket, kAside };

/// This process's doorbell and its epoll set. Safe from every thread.
class PCCL_API Waiter {
   public:
    static Result<std::unique_ptr<Waiter>> create();
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    /// For peers to map; stays owned by the waiter.
    [[nodiscard]] int memfd() const { return memfd_.get(); }

    /// Watches a socket, edge-triggered for input and output; it ends sleeps in every thread.
    /// Closing the descriptor ends the watch.
    Status watch(int fd, Watch watch = Watch::kSocket);
    void unwatch(int fd, Watch watch = Watch::kSocket);

    [[nodiscard]] std::uint32_t prepare();
    /// Sleeps until something happens after `ticket`'s prepare(), at most `longest`. Must follow
    /// prepare().
    void sleep(std::uint32_t ticket, Duration longest);
    void cancel();  // instead of sleep(), after prepare()
    /// Ends all sleeps in this process (another thread has news).
    void wake();
    /// The epoll set: readable when a watched socket has news. For nesting in another set.
    [[nodiscard]] int epoll_fd() const { return epoll_.get(); }

   private:
    Waiter() = default;
    void sleep_on_futex(std::uint32_t ticket, Duration longest);
    void sleep_on_epoll(std::uint32_t ticket, Duration longest);

    UniqueFd memfd_;
    UniqueFd epoll_;
    UniqueFd event_;  // ends sleeps in epoll from inside the process
    DoorbellPage* page_ = nullptr;
    std::atomic<int> watched_{0};
    std::atomic_flag leading_;  // one thread sleeps in epoll, others on the futex
};

/// Paces one wait: bounded spin, bounded yield, then sleeps in slices of at most 50 ms.
///
///     Backoff backoff(waiter);
///     while (!look()) backoff.pause();
class PCCL_API Backoff {
   public:
    explicit Backoff(Waiter& waiter) : waiter_(waiter) {}
    ~Backoff() { reset(); }
    Backoff(const Backoff&) = delete;
    Backoff& operator=(const Backoff&) = delete;

    void pause();
    /// Something moved: start over with spinning.
    void reset();
    /// Whether the last pause() slept: time to look at rare things (deadlines, dead peers).
    [[nodiscard]] bool slept() const { return slept_; }

   private:
    [[nodiscard]] bool may_yield();

    Waiter& waiter_;
    int rounds_ = 0;
    TimePoint yielding_since_{};
    std::uint32_t ticket_ = 0;
    bool armed_ = false;
    bool slept_ = false;
};

}  // namespace pccl::transport
