#include "csrc/costs/measure_bytes.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "csrc/base/streaming.h"
#include "csrc/collective/arithmetic/arithmetic.h"
#include "csrc/costs/timing_samples.h"
#include "csrc/sys/process_memory.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace pccl::costs {
namespace {

// Pieces so large make a call of the kernel, and a look at the clock, small beside them.
constexpr std::size_t kLeastPiece = 8 * kKiB;
constexpr std::size_t kMostPiece = 2 * kMiB;
// To take a piece out of all caches takes ten times as long as to copy it.
constexpr std::size_t kMemoryPiece = 128 * kKiB;
constexpr int kByteTurns = 7;
constexpr int kLeastTurns = 3;  // to tell how much they differ

struct alignas(kCacheLine) CacheLine {
    std::array<std::byte, kCacheLine> bytes;
};

/// Out of all caches; false where no instruction does that.
bool flush([[maybe_unused]] std::span<std::byte> bytes) {
#if defined(__SSE2__)
    for (std::size_t at = 0; at < bytes.size(); at += kCacheLine) _mm_clflush(bytes.data() + at);
    _mm_mfence();
    return true;
#elif defined(__aarch64__)
    for (std::size_t at = 0; at < bytes.size(); at += kCacheLine)
        asm volatile("dc civac, %0" : : "r"(bytes.data() + at) : "memory");
    asm volatile("dsb ish" : : : "memory");
    return true;
#else
    return false;
#endif
}

/// A piece that, with another of its size, a level holds and the one before it does not. In a
/// cache the older ones make space: what is half as much again as it holds is never in it.
std::size_t piece_bytes(Level level, const MachineCosts& costs) {
    switch (level) {
        case Level::kFirst:
            return std::max(costs.cache_bytes[0] / 4, kLeastPiece);
        case Level::kSecond:
            return std::clamp(costs.cache_bytes[1] / 4, kLeastPiece, kMostPiece);
        case Level::kLast:
            return std::clamp(costs.cache_bytes[1] / 4 * 3, kLeastPiece, kMostPiece);
        case Level::kMemory:
            break;
    }
    return kMemoryPiece;
}

/// What one of the two works on.
struct Side {
    std::span<std::byte> source;
    std::span<std::byte> slot;  // written by it, read by the other
    std::span<std::byte> result;
};

/// Where the two wait for each other.
class ThreadBarrier {
   public:
    void wait() {
        const int all = 2 * (arrived_.fetch_add(1) / 2 + 1);
        spin_until([&] { return arrived_.load() >= all; });
    }

   private:
    std::atomic<int> arrived_{0};
};

/// Memory for the two, reused for all levels.
class Pieces {
   public:
    explicit Pieces(std::size_t most) : lines_(kParts * most / kCacheLine), most_(most) {}
    void resize(std::size_t bytes) { bytes_ = bytes; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] Side own() { return {part(0), part(1), part(2)}; }
    [[nodiscard]] Side peers() { return {part(3), part(4), part(5)}; }

   private:
    static constexpr std::size_t kParts = 6;
    [[nodiscard]] std::span<std::byte> part(std::size_t index) {
        return {reinterpret_cast<std::byte*>(lines_.data()) + index * most_, bytes_};
    }

    std::vector<CacheLine> lines_;
    std::size_t most_;
    std::size_t bytes_ = 0;
};

using Write = void (*)(std::span<std::byte> into, std::span<const std::byte> from);

void copy(std::span<std::byte> into, std::span<const std::byte> from) {
    arithmetic::copy_bytes(into.data(), from.data(), into.size());
}

void past_caches(std::span<std::byte> into, std::span<const std::byte> from) {
    stream_bytes(into.data(), from.data(), into.size());
}

/// As one process reads another, which it sees to be alive.
void read_through_kernel(std::span<const std::byte> from, std::span<std::byte> to,
                         TimingSamples& into) {
    Status read;
    const double seconds = seconds_of([&] {
        read =
            sys::read_living_process(::getpid(), reinterpret_cast<std::uint64_t>(from.data()), to);
    });
    if (read.is_ok()) into.add(seconds);
}

/// The figures of one level.
class LevelMeasurement {
   public:
    LevelMeasurement(Level level, Pieces& pieces, PingPongThread* peer_thread)
        : pieces_(pieces),
          peer_thread_(peer_thread),
          is_memory_(level == Level::kMemory),
          is_shared_(level == Level::kLast) {}

    void turn() {
        work_alone();
        if (peer_thread_ == nullptr) return;
        exchange(copy, written_, taken_);
        exchange(past_caches, streamed_, taken_streamed_);
        lend();
    }

    void give(MachineCosts& into, std::size_t level) const {
        const auto bytes = static_cast<double>(pieces_.bytes());
        const auto keep = [level](ByteFigures& figures, const Figure& found) {
            if (found.is_measured) figures[level] = found;
        };
        keep(into.copy, copied_.least_of(bytes));
        keep(into.sum, added_.least_of(bytes));
        keep(into.write, written_.quartile_of(bytes));
        keep(into.take, taken_.quartile_of(bytes));
        keep(into.stream, streamed_.quartile_of(bytes));
        keep(into.take_streamed, taken_streamed_.quartile_of(bytes));
        keep(into.direct, read_.quartile_of(bytes, into.direct_start.seconds));
        keep(into.direct_again, read_again_.quartile_of(bytes, into.direct_start.seconds));
    }

    /// Not of the shortest, in which the steps of the clock show.
    [[nodiscard]] double spread() const {
        constexpr double kMeasurable = 1e-6;
        return copied_.least() < kMeasurable ? 1 : copied_.spread();
    }

   private:
    void forget(std::span<std::byte> bytes) const {
        if (is_memory_) flush(bytes);
    }

    void work_alone() {
        const Side own = pieces_.own();
        copy(own.result, own.source);  // the other thread has had them
        forget(own.source);
        forget(own.result);
        copied_.add(seconds_of([&] { copy(own.result, own.source); }));
        forget(own.source);
        forget(own.result);
        const auto sum = arithmetic::combine_for(DataType::kFloat32, ReduceOp::kSum);
        std::byte* const result = own.result.data();
        const std::size_t count = pieces_.bytes() / sizeof(float);
        added_.add(seconds_of([&] { (*sum)(result, result, own.source.data(), count); }));
    }

    /// Both give and both take, as in a collective: they share the ways to the caches and to
    /// memory.
    void exchange(Write write, TimingSamples& given, TimingSamples& taken) {
        ThreadBarrier barrier;
        TimingSamples theirs;
        const PingPongThread::Task other = [&] {
            take_part(barrier, pieces_.peers(), pieces_.own(), write, theirs, theirs);
        };
        peer_thread_->begin(other);
        take_part(barrier, pieces_.own(), pieces_.peers(), write, given, taken);
        peer_thread_->end();
    }

    /// The other has read the slot before, as those have who read the buffers of a segment; and
    /// other slots after it, where so many are used in turn that they leave its own caches.
    void take_part(ThreadBarrier& barrier, const Side& own, const Side& other, Write write,
                   TimingSamples& given, TimingSamples& taken) const {
        if (is_shared_) copy(own.result, own.source);
        forget(own.source);
        forget(own.slot);
        barrier.wait();
        given.add(seconds_of([&] { write(own.slot, own.source); }));
        forget(own.slot);
        forget(own.result);
        barrier.wait();
        taken.add(seconds_of([&] { copy(own.result, other.slot); }));
        barrier.wait();
    }

    /// Each reads what the other has just written, through the kernel, and once more: in
    /// collectives, too, most read at a time.
    void lend() {
        ThreadBarrier barrier;
        TimingSamples theirs;
        const PingPongThread::Task other = [&] {
            read_part(barrier, pieces_.peers(), pieces_.own(), theirs, theirs);
        };
        peer_thread_->begin(other);
        read_part(barrier, pieces_.own(), pieces_.peers(), read_, read_again_);
        peer_thread_->end();
    }

    void read_part(ThreadBarrier& barrier, const Side& own, const Side& other, TimingSamples& read,
                   TimingSamples& again) const {
        std::ranges::fill(own.source, std::byte{});
        if (is_shared_) copy(own.result, own.slot);  // so that it leaves this core's own caches
        for (TimingSamples* const into : {&read, &again}) {
            barrier.wait();
            forget(other.source);
            forget(own.result);
            barrier.wait();
            read_through_kernel(other.source, own.result, *into);
        }
        barrier.wait();
    }

    Pieces& pieces_;
    PingPongThread* const peer_thread_;
    const bool is_memory_;
    const bool is_shared_;
    TimingSamples copied_, added_, written_, taken_, streamed_, taken_streamed_, read_, read_again_;
};

/// Of a line: what a call costs beside its bytes.
void measure_direct_start(MachineCosts& into) {
    constexpr int kReads = 20;
    const CacheLine line{};
    CacheLine copied{};
    TimingSamples samples;
    for (int i = 0; i < kReads; ++i) read_through_kernel(line.bytes, copied.bytes, samples);
    if (const Figure start = samples.least_of(); start.is_measured) into.direct_start = start;
}

}  // namespace

void measure_bytes(PingPongThread* peer_thread, MachineCosts& into, Deadline deadline,
                   double& spread) {
    measure_direct_start(into);
    constexpr std::array kMostUseful = {Level::kSecond, Level::kFirst, Level::kMemory,
                                        Level::kLast};
    std::size_t most = 0;
    for (const Level level : kMostUseful) most = std::max(most, piece_bytes(level, into));
    Pieces pieces(most);
    for (std::size_t done = 0; done < kLevels; ++done) {
        const Level level = kMostUseful[done];
        if (level == Level::kMemory && !flush({})) continue;
        pieces.resize(piece_bytes(level, into));
        LevelMeasurement measurement(level, pieces, peer_thread);
        // The levels to come need their time, too.
        const Deadline own =
            deadline.within(deadline.remaining() / static_cast<int>(kLevels - done));
        for (int turn = 0; turn < kByteTurns && (turn < kLeastTurns || !own.passed()); ++turn)
            measurement.turn();
        measurement.give(into, static_cast<std::size_t>(level));
        spread = std::max(spread, measurement.spread());
    }
}

}  // namespace pccl::costs
