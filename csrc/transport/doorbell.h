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

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/sys/liveness_futex.h"
#include "csrc/transport/control/socket_watcher.h"

namespace pccl::transport {

/// Lives in shared memory; zero-filled is its valid first state.
struct DoorbellPage {
    alignas(kCacheLine) std::atomic<std::uint32_t> sleepers;  // threads asleep or about to be
    std::atomic<std::uint32_t> epoll_sleepers;                // of these, in epoll
    alignas(kCacheLine) std::atomic<std::uint32_t> sequence;  // futex word; grows with every ring
    alignas(kCacheLine) sys::LivenessWord liveness;           // of the process
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// Descriptors by which peers of the same host ring a process and see whether it lives: its page,
/// an eventfd that ends its sleeps in epoll, and its pidfd (where the kernel has none, one that is
/// never readable).
using DoorbellHandles = std::array<int, 3>;

/// A peer's doorbell. Safe from every thread.
class PCCL_API RemoteDoorbell {
   public:
    /// Takes over duplicates of the peer's DoorbellHandles, in their order.
    static Result<std::unique_ptr<RemoteDoorbell>> adopt(std::span<UniqueFd> handles);
    ~RemoteDoorbell();
    RemoteDoorbell(const RemoteDoorbell&) = delete;
    RemoteDoorbell& operator=(const RemoteDoorbell&) = delete;

    /// To be called after the store that the peer waits for.
    void ring();
    /// Whether the peer's process has ended; a system call.
    [[nodiscard]] bool owner_has_exited() const;
    /// Whether it lived when all loads before this call were made; false says nothing.
    [[nodiscard]] bool is_owner_alive() const {
        return sys::is_held_by_the_living(page_->liveness);
    }
    /// A descriptor that is readable once it has; still this object's.
    [[nodiscard]] int process() const { return process_.get(); }

   private:
    explicit RemoteDoorbell(DoorbellPage* page) : page_(page) {}
    DoorbellPage* page_;
    UniqueFd event_;
    UniqueFd process_;
};

/// Processes of a host that wait for each other, and the cores that they may run on.
struct Crowd {
    std::uint32_t processes = 0;  // 0: unknown
    std::uint32_t cores = 1;

    [[nodiscard]] bool is_short_of_cores() const { return processes > cores; }
    /// At least two cores each: where two are threads of one, it has one alone.
    [[nodiscard]] bool has_room() const { return processes > 0 && 2 * processes <= cores; }
    [[nodiscard]] int most_on_core() const {
        return static_cast<int>((processes + cores - 1) / cores);
    }
    /// Whether more of them share a core.
    [[nodiscard]] bool is_denser_than(const Crowd& other) const {
        return std::uint64_t{processes} * other.cores > std::uint64_t{other.processes} * cores;
    }
    bool operator==(const Crowd&) const = default;
};

/// This process's doorbell and its epoll set. Safe from every thread.
class PCCL_API Waiter final : public SocketWatcher {
   public:
    static Result<std::unique_ptr<Waiter>> create();
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    /// For peers; the descriptors stay owned by the waiter.
    [[nodiscard]] DoorbellHandles handles() const {
        return {memfd_.get(), event_.get(), process_.get()};
    }

    Status watch(int fd) override;
    void unwatch(int fd) override;

    [[nodiscard]] std::uint32_t prepare();
    /// Sleeps until something happens after `ticket`'s prepare(), at most `longest`. Must follow
    /// prepare(). Below a millisecond, news of sockets do not end it.
    void sleep(std::uint32_t ticket, Duration longest);
    void cancel();  // instead of sleep(), after prepare()
    /// Tells peers that this process lives, as long as the calling thread keeps what it returns.
    [[nodiscard]] sys::LivenessFutex hold_liveness() { return sys::LivenessFutex(page_->liveness); }
    /// Ends all sleeps in this process (another thread has news).
    void wake();
    /// What waits of this process are to go by from now on, unless another group is denser.
    void share_cores(Crowd crowd);
    /// How long from the call that wakes a sleeper of this host until it runs: waits yield for the
    /// longer, the dearer a sleep is.
    void wakes_take(Duration each);
    /// From now on prepare() passes a barrier in all processes: peers ring without one.
    void take_barriers() { barriers_.store(true, std::memory_order_relaxed); }
    [[nodiscard]] Crowd crowd() const { return crowd_.load(std::memory_order_relaxed); }
    /// How long a pair with a core each yields.
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
    std::atomic<Crowd> crowd_{Crowd()};
    static_assert(std::atomic<Crowd>::is_always_lock_free);
    std::atomic<Duration> yield_limit_{std::chrono::microseconds(200)};
    std::atomic<bool> barriers_{false};
    std::atomic_flag leading_;  // one thread sleeps in epoll, others on the futex
};

/// Paces one wait: bounded spin, bounded yield, then sleeps in slices. Where more processes of a
/// group share this host than it has cores, nobody spins: the one that is waited for may need this
/// core. Where it has just enough, they spin the shorter the more they are: one is always in the
/// way of something, and the others wait for it. Where cores are plenty, waits yield for longer:
/// who sleeps is late for whom it sends to, and so on from rank to rank.
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

    /// Sleeps at most so long, where it sleeps.
    void pause(Duration longest = kSlice);
    /// Something moved: start over with spinning.
    void reset();
    /// Whether the last pause() slept: time to look at rare things (deadlines, dead peers).
    [[nodiscard]] bool slept() const { return slept_; }

   private:
    bool yield_or_not();
    [[nodiscard]] bool has_yielded_enough(Duration yielding) const;
    [[nodiscard]] int spins() const;

    Waiter& waiter_;
    const Crowd crowd_;
    int rounds_ = 0;
    int fruitless_ = 0;  // yields in a row that came back at once
    TimePoint since_{};
    std::uint32_t ticket_ = 0;
    bool armed_ = false;
    bool slept_ = false;
};

}  // namespace pccl::transport
