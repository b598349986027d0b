// SPDX-License-Identifier: Apache-2.0
#include "csrc/costs/ping_pong.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/unique_fd.h"
#include "csrc/costs/timing_samples.h"

namespace pccl::costs {
namespace {

/// Sends a line to the other core and back `rounds` times.
double hand_over(PingPongThread& peer_thread, int rounds) {
    alignas(kCacheLine) std::atomic<int> line{0};
    const auto answer = [&] {
        for (int round = 0; round < rounds; ++round) {
            spin_until([&] { return line.load(std::memory_order_acquire) == 2 * round + 1; });
            line.store(2 * round + 2, std::memory_order_release);
        }
    };
    const PingPongThread::Task task = answer;
    peer_thread.begin(task);
    const double seconds = seconds_of([&] {
        for (int round = 0; round < rounds; ++round) {
            line.store(2 * round + 1, std::memory_order_release);
            spin_until([&] { return line.load(std::memory_order_acquire) == 2 * round + 2; });
        }
    });
    peer_thread.end();
    return seconds / rounds;
}

Figure round_trip_of(PingPongThread& peer_thread, Deadline deadline) {
    // Short measurements: a preemption disturbs only one of them.
    constexpr int kRounds = 16;
    constexpr int kTurns = 25;
    TimingSamples samples;
    for (int turn = 0; turn < kTurns && !deadline.passed(); ++turn)
        samples.add(hand_over(peer_thread, kRounds));
    return samples.quartile_of();
}

/// Returns a few cores, spread over their numbers.
std::vector<std::size_t> some_of(const sys::CoreSet& cores) {
    constexpr std::size_t kMost = 5;
    std::vector<std::size_t> all;
    for (std::size_t core = 0; core < cores.size(); ++core)
        if (cores[core]) all.push_back(core);
    std::vector<std::size_t> some;
    const std::size_t count = std::min(all.size(), kMost);
    some.reserve(count);
    for (std::size_t i = 0; i < count; ++i) some.push_back(all[i * all.size() / count]);
    return some;
}

/// Event counter on which a thread can sleep.
class Bell {
   public:
    Bell() : fd_(::eventfd(0, EFD_CLOEXEC)) {}
    [[nodiscard]] bool is_open() const { return fd_.is_open(); }
    void ring() const {
        const std::uint64_t one = 1;
        static_cast<void>(::write(fd_.get(), &one, sizeof one) == sizeof one);
    }
    void wait() const {
        std::uint64_t count = 0;
        static_cast<void>(::read(fd_.get(), &count, sizeof count) == sizeof count);
    }

   private:
    UniqueFd fd_;
};

/// Measures two threads that wake each other in turn; returns seconds for both directions.
Figure wake_each_other(PingPongThread& peer_thread, Deadline deadline) {
    constexpr int kRounds = 40;
    const Bell there;
    const Bell back;
    if (!there.is_open() || !back.is_open()) return {};
    std::atomic<bool> is_last{false};
    const PingPongThread::Task answer = [&] {
        for (bool goes_on = true; goes_on;) {
            there.wait();
            goes_on = !is_last.load();
            back.ring();
        }
    };
    TimingSamples samples;
    peer_thread.begin(answer);
    for (int round = 0; !is_last.load(); ++round) {
        is_last.store(round == kRounds || deadline.passed());
        const double seconds = seconds_of([&] {
            there.ring();
            back.wait();
        });
        if (round > 0) samples.add(seconds);  // in round 0 the other thread may not be ready
    }
    peer_thread.end();
    return samples.quartile_of();
}

}  // namespace

PingPongThread::PingPongThread() : thread_("pccl-costs", [this] { serve(); }) {}

PingPongThread::~PingPongThread() { is_over_.store(true); }

void PingPongThread::serve() {
    for (;;) {
        spin_until([this] { return task_.load() != nullptr || is_over_.load(); });
        if (is_over_.load()) return;
        (*task_.load())();
        task_.store(nullptr);
    }
}

void PingPongThread::end() {
    spin_until([this] { return task_.load() == nullptr; });
}

void PingPongThread::run(const Task& task) {
    begin(task);
    end();
}

Status PingPongThread::run_on(const sys::CoreSet& cores) {
    Status done;
    run([&] { done = sys::run_on(cores); });
    return done;
}

long PingPongThread::interruptions() {
    long count = 0;
    run([&] { count = interruptions_of_this_thread(); });
    return count;
}

long interruptions_of_this_thread() {
    rusage usage{};
    return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

bool meet_on_another_core(PingPongThread& peer_thread, MachineCosts& into, Deadline deadline) {
    sys::CoreSet others = sys::allowed_cores();
    others.reset(sys::current_core());
    std::vector<std::pair<double, std::size_t>> round_trips;
    for (const std::size_t core : some_of(others)) {
        if (deadline.passed() || !peer_thread.run_on(sys::CoreSet().set(core)).is_ok()) continue;
        if (const Figure round_trip = round_trip_of(peer_thread, deadline); round_trip.is_measured)
            round_trips.emplace_back(round_trip.seconds, core);
    }
    if (round_trips.empty()) return false;
    // Threads of one core are closer to each other than ranks usually are, and sockets are more
    // distant.
    std::ranges::sort(round_trips);
    const auto [seconds, core] = round_trips[round_trips.size() / 2];
    into.core_round_trip = {seconds, true};
    return peer_thread.run_on(sys::CoreSet().set(core)).is_ok();
}

void measure_wake(PingPongThread& peer_thread, MachineCosts& into, Deadline deadline) {
    Figure there_and_back = wake_each_other(peer_thread, deadline);
    there_and_back.seconds /= 2;
    if (there_and_back.is_measured) into.wake = there_and_back;
}

void measure_shared_core(PingPongThread& peer_thread, MachineCosts& into, Deadline deadline) {
    if (!peer_thread.run_on(sys::CoreSet().set(sys::current_core())).is_ok()) return;
    if (const Figure round_trip = wake_each_other(peer_thread, deadline); round_trip.is_measured)
        into.shared_core_round_trip = round_trip;
}

}  // namespace pccl::costs
