// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/doorbell.h"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>
#include <tuple>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/sys/cpu/relax.h"
#include "csrc/sys/memory_barrier.h"
#include "csrc/sys/memory_file.h"

namespace pccl::transport {
namespace {

// Rounds of a wait, each of which checks everything.
constexpr int kSpins = 200;
// Limit of yielding, in wake-up latencies. Where cores are plenty it is ten times as long, enough
// for a collective of short messages among the ranks of a large host to end. A yield gives a core
// away for as long as its other users run: milliseconds, on a busy machine.
constexpr int kYieldLimitInWakes = 30;
constexpr int kYieldLimitWithRoom = 10;  // factor
constexpr Duration kLeastYieldLimit = std::chrono::microseconds(50);
constexpr Duration kMostYieldLimit = std::chrono::milliseconds(1);
// A yield that returns faster found no other thread to run: perhaps the other ranks sleep, or run
// in other sessions, whose processes the kernel groups apart (autogroup).
constexpr Duration kFruitlessYield = std::chrono::nanoseconds(1500);
constexpr int kFruitlessYields = 3;

// epoll_wait() has no finer ticks.
constexpr Duration kShortestEpoll = std::chrono::milliseconds(1);

/// Maps the page; with MAP_ANONYMOUS and no file it belongs to this process and its threads alone.
Result<DoorbellPage*> map_page(int memfd, int flags = 0) {
    void* memory =
        ::mmap(nullptr, sizeof(DoorbellPage), PROT_READ | PROT_WRITE, MAP_SHARED | flags, memfd, 0);
    if (memory == MAP_FAILED) return Status::from_errno(errno, "cannot map a doorbell");
    return static_cast<DoorbellPage*>(memory);
}

std::uint32_t* futex_word(DoorbellPage* page) {
    return reinterpret_cast<std::uint32_t*>(&page->sequence);
}

void futex_wake_all(DoorbellPage* page) {
    ::syscall(SYS_futex, futex_word(page), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void futex_wait(DoorbellPage* page, std::uint32_t expected, Duration longest) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest);
    const timespec timeout{static_cast<time_t>(seconds.count()),
                           static_cast<long>((longest - seconds).count())};
    ::syscall(SYS_futex, futex_word(page), FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

/// Wakes the sleepers of `page`; returns true when some of them sleep in epoll.
bool ring_page(DoorbellPage* page) {
    // Orders the caller's store before the load of `sleepers`; the sleeper does the opposite.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (page->sleepers.load(std::memory_order_relaxed) == 0) return false;
    page->sequence.fetch_add(1, std::memory_order_seq_cst);
    futex_wake_all(page);
    return page->epoll_sleepers.load(std::memory_order_seq_cst) != 0;
}

Result<UniqueFd> make_event() {
    UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event.is_open()) return Status::from_errno(errno, "cannot create an eventfd");
    return event;
}

/// Adds one to an eventfd. A full eventfd wakes as well.
void add_one(int event) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(event, &one, sizeof one);
}

/// Returns this process's pidfd, or an eventfd that nobody writes.
Result<UniqueFd> process_handle() {
    UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    if (process.is_open()) return process;
    return make_event();
}

/// Returns the divisor of the yield limit of a pair.
int share_of(const Crowd& crowd) { return std::max(1, static_cast<int>(crowd.processes / 2)); }

}  // namespace

Result<std::unique_ptr<RemoteDoorbell>> RemoteDoorbell::adopt(std::span<UniqueFd> handles) {
    if (handles.size() != std::tuple_size_v<DoorbellHandles>)
        return Status::invalid_argument(concat("a doorbell of ", handles.size(), " descriptors"));
    PCCL_ASSIGN_OR_RETURN(DoorbellPage * page, map_page(handles[0].get()));
    std::unique_ptr<RemoteDoorbell> bell(new RemoteDoorbell(page));
    bell->event_ = std::move(handles[1]);
    bell->process_ = std::move(handles[2]);
    return bell;
}

RemoteDoorbell::~RemoteDoorbell() { ::munmap(page_, sizeof(DoorbellPage)); }

void RemoteDoorbell::ring() {
    if (ring_page(page_)) add_one(event_.get());
}

bool RemoteDoorbell::owner_has_exited() const {
    pollfd interest{.fd = process_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&interest, 1, 0) == 1 && (interest.revents & POLLIN) != 0;
}

Result<std::unique_ptr<Waiter>> Waiter::create() {
    std::unique_ptr<Waiter> waiter(new Waiter);
    auto memory = sys::make_memory_file("pccl-doorbell", sizeof(DoorbellPage));
    if (memory.status().code() == StatusCode::kResourceExhausted) return memory.status();
    // A process that cannot make a memory file still waits for its sockets.
    if (memory.is_ok()) waiter->memfd_ = std::move(*memory);
    const int flags = waiter->memfd_.is_open() ? 0 : MAP_ANONYMOUS;
    PCCL_ASSIGN_OR_RETURN(waiter->page_, map_page(waiter->memfd_.get(), flags));
    waiter->epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!waiter->epoll_.is_open()) return Status::from_errno(errno, "cannot create an epoll set");
    PCCL_ASSIGN_OR_RETURN(waiter->event_, make_event());
    PCCL_ASSIGN_OR_RETURN(waiter->process_, process_handle());
    epoll_event interest{.events = EPOLLIN | EPOLLET, .data = {}};
    if (::epoll_ctl(waiter->epoll_.get(), EPOLL_CTL_ADD, waiter->event_.get(), &interest) != 0)
        return Status::from_errno(errno, "cannot watch an eventfd");
    return waiter;
}

Waiter::~Waiter() {
    if (page_ != nullptr) ::munmap(page_, sizeof(DoorbellPage));
}

Status Waiter::watch(int fd) {
    epoll_event interest{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &interest) != 0)
        return Status::from_errno(errno, "cannot watch a socket");
    // A sleeper on the futex would miss socket events.
    if (watched_.fetch_add(1, std::memory_order_relaxed) == 0) wake();
    return Status::ok();
}

void Waiter::unwatch(int fd) {
    const bool was_watched = ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr) == 0;
    if (was_watched) watched_.fetch_sub(1, std::memory_order_relaxed);
}

std::uint32_t Waiter::prepare() {
    page_->sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (barriers_.load(std::memory_order_relaxed)) sys::process_barrier();
    if (source_count_.load(std::memory_order_acquire) > 0) {
        const std::lock_guard lock(sources_mutex_);
        for (BeforeSleep* const source : sources_) source->before_sleep();
    }
    return page_->sequence.load(std::memory_order_seq_cst);
}

void Waiter::add(BeforeSleep& source) {
    const std::lock_guard lock(sources_mutex_);
    sources_.push_back(&source);
    source_count_.store(sources_.size(), std::memory_order_release);
}

void Waiter::remove(BeforeSleep& source) {
    const std::lock_guard lock(sources_mutex_);
    std::erase(sources_, &source);
    source_count_.store(sources_.size(), std::memory_order_release);
}

void Waiter::cancel() { page_->sleepers.fetch_sub(1, std::memory_order_seq_cst); }

void Waiter::sleep(std::uint32_t ticket, Duration longest) {
    const bool sockets = watched_.load(std::memory_order_relaxed) > 0 && longest >= kShortestEpoll;
    if (sockets && !leading_.test_and_set(std::memory_order_acquire))
        sleep_on_epoll(ticket, longest);
    else
        sleep_on_futex(ticket, longest);
    cancel();
}

void Waiter::sleep_on_futex(std::uint32_t ticket, Duration longest) {
    futex_wait(page_, ticket, longest);
}

void Waiter::sleep_on_epoll(std::uint32_t ticket, Duration longest) {
    page_->epoll_sleepers.fetch_add(1, std::memory_order_seq_cst);
    // A ring between prepare() and this point saw no sleeper in epoll, and wrote no event.
    if (page_->sequence.load(std::memory_order_seq_cst) == ticket) {
        epoll_event event{};
        const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::max(longest, Duration(1'000'000)));
        ::epoll_wait(epoll_.get(), &event, 1, static_cast<int>(timeout.count()));
    }
    page_->epoll_sleepers.fetch_sub(1, std::memory_order_seq_cst);
    // The event may be for another thread: wake all, so that they check, and the next leader does
    // so before it sleeps.
    page_->sequence.fetch_add(1, std::memory_order_seq_cst);
    leading_.clear(std::memory_order_release);
    // A thread that found a leader since then is about to sleep on the futex, with nobody in epoll.
    page_->sequence.fetch_add(1, std::memory_order_seq_cst);
    if (page_->sleepers.load(std::memory_order_seq_cst) > 1) futex_wake_all(page_);
}

void Waiter::share_cores(Crowd crowd) {
    Crowd before = crowd_.load(std::memory_order_relaxed);
    while (crowd.is_denser_than(before) && !crowd_.compare_exchange_weak(before, crowd)) continue;
}

void Waiter::wakes_take(Duration each) {
    yield_limit_.store(std::clamp(kYieldLimitInWakes * each, kLeastYieldLimit, kMostYieldLimit),
                       std::memory_order_relaxed);
}

void Waiter::wake() {
    if (ring_page(page_)) add_one(event_.get());
}

void Backoff::pause(Duration longest) {
    slept_ = false;
    if (armed_) {
        armed_ = false;
        waiter_.sleep(ticket_, longest);
        slept_ = true;
        return;
    }
    ++rounds_;
    if (rounds_ < spins()) {
        relax();
    } else if (!yield_or_not()) {
        ticket_ = waiter_.prepare();
        armed_ = true;
    }
}

/// Yields; returns false after enough yields.
bool Backoff::yield_or_not() {
    const TimePoint before = system_clock().now();
    if (since_ == TimePoint{}) since_ = before;
    if (has_yielded_enough(before - since_)) return false;
    ::sched_yield();
    fruitless_ = system_clock().now() - before < kFruitlessYield ? fruitless_ + 1 : 0;
    return true;
}

int Backoff::spins() const {
    if (crowd_.is_short_of_cores()) return 0;
    return crowd_.has_room() ? kSpins : kSpins / share_of(crowd_);
}

bool Backoff::has_yielded_enough(Duration yielding) const {
    const Duration yield_limit = waiter_.yield_limit();
    // No other thread wants this core.
    if (crowd_.has_room() && fruitless_ > 0) return yielding >= kYieldLimitWithRoom * yield_limit;
    if (crowd_.is_short_of_cores())
        return fruitless_ == kFruitlessYields || yielding >= yield_limit;
    return yielding >= yield_limit / share_of(crowd_);
}

void Backoff::reset() {
    rounds_ = 0;
    fruitless_ = 0;
    since_ = {};
    if (!armed_) return;
    armed_ = false;
    waiter_.cancel();
}

}  // namespace pccl::transport
