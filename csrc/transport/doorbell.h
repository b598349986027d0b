// SPDX-License-Identifier: Apache-2.0

// Sleep and wake-up between the processes of a host.
//
// A waiting thread spins for a moment, yields a bounded number of times, then sleeps: on a futex
// while all its links are shared memory, on epoll as soon as sockets are among them. A Doorbell is
// a page of shared memory in which a process publishes whether and how it sleeps. Peers on the same
// host map the page and ring the process. A ring costs one fence and one load while the process is
// awake.
//
// Waiting is an event count (D. Vyukov): ticket = prepare(); check once more; then sleep(ticket).
// Anything that arrives after prepare() ends the sleep.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/base/unique_fd.h"
#include "csrc/sys/liveness_futex.h"
#include "csrc/transport/control/socket_watcher.h"

namespace pccl::transport {

/// Page in shared memory; zero-filled is its valid first state.
struct DoorbellPage {
    alignas(kCacheLine) std::atomic<std::uint32_t> sleepers;  // threads asleep or about to be
    std::atomic<std::uint32_t> epoll_sleepers;                // those of them that sleep in epoll
    alignas(kCacheLine) std::atomic<std::uint32_t> sequence;  // futex word; every ring increments
                                                              // it
    alignas(kCacheLine) sys::LivenessWord liveness;           // of the process
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// Descriptors by which peers of the same host ring a process and check whether it lives: its page,
/// an eventfd that ends its sleeps in epoll, and its pidfd (a descriptor that is never readable
/// where the kernel has no pidfd).
using DoorbellHandles = std::array<int, 3>;

/// Doorbell of a peer. Thread-safe.
class PCCL_API RemoteDoorbell {
   public:
    /// Takes ownership of duplicates of the peer's DoorbellHandles, in their order.
    static Result<std::unique_ptr<RemoteDoorbell>> adopt(std::span<UniqueFd> handles);
    ~RemoteDoorbell();
    RemoteDoorbell(const RemoteDoorbell&) = delete;
    RemoteDoorbell& operator=(const RemoteDoorbell&) = delete;

    /// Rings the peer. The call follows the store that the peer waits for.
    void ring();
    /// Returns whether the peer's process has ended. Makes a system call.
    [[nodiscard]] bool owner_has_exited() const;
    /// Returns true if the process lived when all loads before this call were made; false proves
    /// nothing.
    [[nodiscard]] bool is_owner_alive() const {
        return sys::is_held_by_the_living(page_->liveness);
    }
    /// Returns a descriptor that becomes readable when the process ends; this object owns it.
    [[nodiscard]] int process() const { return process_.get(); }

   private:
    explicit RemoteDoorbell(DoorbellPage* page) : page_(page) {}
    DoorbellPage* page_;
    UniqueFd event_;
    UniqueFd process_;
};

/// Number of processes of a host that wait for each other, and of the cores that they may run on.
struct Crowd {
    std::uint32_t processes = 0;  // 0: unknown
    std::uint32_t cores = 1;

    [[nodiscard]] bool is_short_of_cores() const { return processes > cores; }
    /// Returns whether each process has at least two cores: two hardware threads may be one core.
    [[nodiscard]] bool has_room() const { return processes > 0 && 2 * processes <= cores; }
    [[nodiscard]] int most_on_core() const {
        return static_cast<int>((processes + cores - 1) / cores);
    }
    /// Returns whether more processes share a core than in `other`.
    [[nodiscard]] bool is_denser_than(const Crowd& other) const {
        return std::uint64_t{processes} * other.cores > std::uint64_t{other.processes} * cores;
    }
    bool operator==(const Crowd&) const = default;
};

/// Source of events that must be requested before each sleep (completion queues of RDMA devices).
class BeforeSleep {
   public:
    /// Requests an event from now on; called by a thread that is about to sleep, and checks once
    /// more afterwards. Must not block.
    virtual void before_sleep() = 0;

   protected:
    ~BeforeSleep() = default;
};

/// Doorbell and epoll set of this process. Thread-safe.
class PCCL_API Waiter final : public SocketWatcher {
   public:
    static Result<std::unique_ptr<Waiter>> create();
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    /// Returns the descriptors for peers; the waiter keeps ownership.
    [[nodiscard]] DoorbellHandles handles() const {
        return {memfd_.get(), event_.get(), process_.get()};
    }

    Status watch(int fd) override;
    void unwatch(int fd) override;
    /// Lets prepare() call the source, which must live until remove() has returned.
    void add(BeforeSleep& source);
    void remove(BeforeSleep& source);

    [[nodiscard]] std::uint32_t prepare();
    /// Sleeps until an event after `ticket`'s prepare(), at most `longest`. prepare() must come
    /// first. Socket events do not end a sleep that is shorter than a millisecond.
    void sleep(std::uint32_t ticket, Duration longest);
    void cancel();  // replaces sleep() after prepare()
    /// Publishes to peers that this process lives, while the calling thread holds the returned
    /// object.
    [[nodiscard]] sys::LivenessFutex hold_liveness() { return sys::LivenessFutex(page_->liveness); }
    /// Ends all sleeps in this process after an event on another thread.
    void wake();
    /// Sets the crowd that waits of this process adapt to, unless the present one is denser.
    void share_cores(Crowd crowd);
    /// Sets the wake-up latency of this host, from the wake call until the sleeper runs. Waits
    /// yield for longer where a sleep costs more.
    void wakes_take(Duration each);
    /// Lets prepare() issue a barrier in all processes from now on: peers may then publish without
    /// a fence, and check for sleepers afterwards (comm/shm).
    void take_barriers() { barriers_.store(true, std::memory_order_relaxed); }
    [[nodiscard]] Crowd crowd() const { return crowd_.load(std::memory_order_relaxed); }
    /// Returns how long a pair with a core each yields before it sleeps.
    [[nodiscard]] Duration yield_limit() const {
        return yield_limit_.load(std::memory_order_relaxed);
    }

   private:
    Waiter() = default;
    void sleep_on_futex(std::uint32_t ticket, Duration longest);
    void sleep_on_epoll(std::uint32_t ticket, Duration longest);

    UniqueFd memfd_;
    UniqueFd epoll_;
    UniqueFd event_;  // ends sleeps in epoll
    UniqueFd process_;
    DoorbellPage* page_ = nullptr;
    std::atomic<int> watched_{0};
    std::atomic<std::size_t> source_count_{0};
    std::mutex sources_mutex_;
    std::vector<BeforeSleep*> sources_;  // guarded by sources_mutex_
    std::atomic<Crowd> crowd_{Crowd()};
    static_assert(std::atomic<Crowd>::is_always_lock_free);
    std::atomic<Duration> yield_limit_{std::chrono::microseconds(200)};
    std::atomic<bool> barriers_{false};
    std::atomic_flag leading_;  // one thread sleeps in epoll, others on the futex
};

/// Pacing of one wait: bounded spin, bounded yield, then sleeps in slices. Nobody spins where more
/// processes of a group share this host than it has cores: the awaited process may need this core.
/// Where the cores just suffice, the limits of spinning and yielding shrink with the number of
/// processes: one of them is always preempted by other work, and the others wait for it. Where
/// cores are plenty, waits yield for longer: a sleeper delays its receivers, and the delay spreads
/// from rank to rank.
///
///     Backoff backoff(waiter);
///     while (!look()) backoff.pause();
class PCCL_API Backoff {
   public:
    static constexpr Duration kSlice = std::chrono::milliseconds(50);

    explicit Backoff(Waiter& waiter) : waiter_(waiter), crowd_(waiter.crowd()) {}
    ~Backoff() { reset(); }
    Backoff(const Backoff&) = delete;
    Backoff& operator=(const Backoff&) = delete;

    /// Spins, yields or sleeps; a sleep takes at most `longest`.
    void pause(Duration longest = kSlice);
    /// Starts over with spinning after progress.
    void reset();
    /// Returns whether the last pause() slept: the caller then checks deadlines and dead peers.
    [[nodiscard]] bool slept() const { return slept_; }
    /// Returns whether the next pause() spins: so far, the wait is a short one.
    [[nodiscard]] bool is_spinning() const { return rounds_ + 1 < spins(); }

   private:
    bool yield_or_not();
    [[nodiscard]] bool has_yielded_enough(Duration yielding) const;
    [[nodiscard]] int spins() const;

    Waiter& waiter_;
    const Crowd crowd_;
    int rounds_ = 0;
    int fruitless_ = 0;  // consecutive yields that returned at once
    TimePoint since_{};
    std::uint32_t ticket_ = 0;
    bool armed_ = false;
    bool slept_ = false;
};

/// Open socket that a Waiter watches.
class WatchedSocket {
   public:
    WatchedSocket(UniqueFd fd, Waiter& waiter) : fd_(std::move(fd)), waiter_(&waiter) {}
    WatchedSocket(WatchedSocket&&) noexcept = default;
    WatchedSocket& operator=(WatchedSocket&&) = delete;
    WatchedSocket(const WatchedSocket&) = delete;
    WatchedSocket& operator=(const WatchedSocket&) = delete;
    ~WatchedSocket() {
        if (fd_.is_open()) waiter_->unwatch(fd_.get());
    }
    /// Starts the watch; call it once, before the first use.
    Status watch() { return waiter_->watch(fd_.get()); }
    /// Ends the watch and returns the socket.
    [[nodiscard]] UniqueFd release() {
        waiter_->unwatch(fd_.get());
        return std::move(fd_);
    }
    [[nodiscard]] int fd() const { return fd_.get(); }

   private:
    UniqueFd fd_;
    Waiter* waiter_;
};

}  // namespace pccl::transport
