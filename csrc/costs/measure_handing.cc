#include "csrc/costs/measure_handing.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "csrc/base/unique_fd.h"
#include "csrc/costs/samples.h"

namespace pccl::costs {
namespace {

/// A line goes there and back `rounds` times.
double hand_over(Partner& partner, int rounds) {
    alignas(kCacheLine) std::atomic<int> line{0};
    const auto answer = [&] {
        for (int round = 0; round < rounds; ++round) {
            spin_until([&] { return line.load(std::memory_order_acquire) == 2 * round + 1; });
            line.store(2 * round + 2, std::memory_order_release);
        }
    };
    const Partner::Task task = answer;
    partner.begin(task);
    const double seconds = seconds_of([&] {
        for (int round = 0; round < rounds; ++round) {
            line.store(2 * round + 1, std::memory_order_release);
            spin_until([&] { return line.load(std::memory_order_acquire) == 2 * round + 2; });
        }
    });
    partner.end();
    return seconds / rounds;
}

Figure beat_of(Partner& partner, Deadline deadline) {
    // Short ones: who is put aside for a moment disturbs one alone.
    constexpr int kRounds = 16;
    constexpr int kTurns = 25;
    Samples samples;
    for (int turn = 0; turn < kTurns && !deadline.passed(); ++turn)
        samples.add(hand_over(partner, kRounds));
    return samples.quartile_of();
}

/// A few of them, from near to far as they are numbered.
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

/// Counts what it is told, and lets whoever waits for it sleep.
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

/// Two threads wake each other in turn; seconds there and back.
Figure wake_each_other(Partner& partner, Deadline deadline) {
    constexpr int kRounds = 40;
    const Bell there;
    const Bell back;
    if (!there.is_open() || !back.is_open()) return {};
    std::atomic<bool> is_last{false};
    const Partner::Task answer = [&] {
        for (bool goes_on = true; goes_on;) {
            there.wait();
            goes_on = !is_last.load();
            back.ring();
        }
    };
    Samples samples;
    partner.begin(answer);
    for (int round = 0; !is_last.load(); ++round) {
        is_last.store(round == kRounds || deadline.passed());
        const double seconds = seconds_of([&] {
            there.ring();
            back.wait();
        });
        if (round > 0) samples.add(seconds);  // at first it may not be there yet
    }
    partner.end();
    return samples.quartile_of();
}

}  // namespace

bool meet_on_another_core(Partner& partner, MachineCosts& into, Deadline deadline) {
    sys::CoreSet others = sys::allowed_cores();
    others.reset(sys::current_core());
    std::vector<std::pair<double, std::size_t>> beats;
    for (const std::size_t core : some_of(others)) {
        if (deadline.passed() || !partner.run_on(sys::CoreSet().set(core)).is_ok()) continue;
        if (const Figure beat = beat_of(partner, deadline); beat.is_measured)
            beats.emplace_back(beat.seconds, core);
    }
    if (beats.empty()) return false;
    // Threads of one core are nearer to each other than ranks mostly are, sockets farther.
    std::ranges::sort(beats);
    const auto [seconds, core] = beats[beats.size() / 2];
    into.beat = {seconds, true};
    return partner.run_on(sys::CoreSet().set(core)).is_ok();
}

void measure_wake(Partner& partner, MachineCosts& into, Deadline deadline) {
    Figure there_and_back = wake_each_other(partner, deadline);
    there_and_back.seconds /= 2;
    if (there_and_back.is_measured) into.wake = there_and_back;
}

void measure_shared_core(Partner& partner, MachineCosts& into, Deadline deadline) {
    if (!partner.run_on(sys::CoreSet().set(sys::current_core())).is_ok()) return;
    if (const Figure beat = wake_each_other(partner, deadline); beat.is_measured)
        into.shared_core_beat = beat;
}

}  // namespace pccl::costs
