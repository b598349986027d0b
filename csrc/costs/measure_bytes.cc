// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "csrc/collective/arithmetic/arithmetic.h"
#include "csrc/costs/measure.h"
#include "csrc/costs/timing_samples.h"
#include "csrc/sys/cpu/streaming.h"
#include "csrc/sys/process_memory.h"

#if defined(__SSE2__)
#include <emmintrin.h>

#include "csrc/base/ids.h"
#endif

namespace pccl::costs {
namespace {

// For pieces of this size the costs of a system call and of reading the clock are negligible.
constexpr std::size_t kLeastPiece = 8 * kKiB;
constexpr std::size_t kMostPiece = 2 * kMiB;
// Flushing a piece from all caches takes ten times as long as copying it.
constexpr std::size_t kMemoryPiece = 128 * kKiB;
constexpr int kByteTurns = 7;
constexpr int kLeastTurns = 3;  // for an estimate of the spread

struct alignas(kCacheLine) CacheLine {
    std::array<std::byte, kCacheLine> bytes;
};

/// Flushes bytes from all caches; false if the processor has no instruction for that.
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

/// Returns a size of which two pieces fit into a level and not into the one before it. Old lines
/// are evicted from a cache: data of 1.5 times its size are never found in it.
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

/// Memory of one of the two threads.
struct ThreadBuffers {
    std::span<std::byte> source;
    std::span<std::byte> slot;  // written by it, read by the other thread
    std::span<std::byte> result;
};

/// Barrier for the two threads.
class ThreadBarrier {
   public:
    void wait() {
        const int all = 2 * (arrived_.fetch_add(1) / 2 + 1);
        spin_until([&] { return arrived_.load() >= all; });
    }

   private:
    std::atomic<int> arrived_{0};
};

/// Memory for both threads, reused for all levels.
class Pieces {
   public:
    explicit Pieces(std::size_t most) : lines_(kParts * most / kCacheLine), most_(most) {}
    void resize(std::size_t bytes) { bytes_ = bytes; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] ThreadBuffers own() { return {part(0), part(1), part(2)}; }
    [[nodiscard]] ThreadBuffers peers() { return {part(3), part(4), part(5)}; }

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

/// Reads as one process reads from another that it finds alive.
void read_through_kernel(std::span<const std::byte> from, std::span<std::byte> to,
                         TimingSamples& into) {
    Status read;
    const double seconds = seconds_of([&] {
        read =
            sys::read_living_process(::getpid(), reinterpret_cast<std::uint64_t>(from.data()), to);
    });
    if (read.is_ok()) into.add(seconds);
}

/// Measurement of one level.
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

    /// Returns the spread, except for the shortest steps, for which the clock's resolution matters.
    [[nodiscard]] double spread() const {
        constexpr double kMeasurable = 1e-6;
        return copied_.least() < kMeasurable ? 1 : copied_.spread();
    }

   private:
    void forget(std::span<std::byte> bytes) const {
        if (is_memory_) flush(bytes);
    }

    void work_alone() {
        const ThreadBuffers own = pieces_.own();
        copy(own.result, own.source);  // the other thread has used these bytes
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

    /// Measures with both threads writing and reading, as in a collective: they share the paths to
    /// the caches and to memory.
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

    /// Measures one thread's part. The other thread has read the slot before, as readers of a
    /// segment's buffers have; it has also read enough other slots afterwards, if slots in turn
    /// exceed its own caches.
    void take_part(ThreadBarrier& barrier, const ThreadBuffers& own, const ThreadBuffers& other,
                   Write write, TimingSamples& given, TimingSamples& taken) const {
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

    /// Measures direct reads: each thread reads through the kernel what the other has just written,
    /// twice. In collectives, too, most ranks read concurrently.
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

    void read_part(ThreadBarrier& barrier, const ThreadBuffers& own, const ThreadBuffers& other,
                   TimingSamples& read, TimingSamples& again) const {
        std::ranges::fill(own.source, std::byte{});
        if (is_shared_) copy(own.result, own.slot);  // evicts it from this core's own caches
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

/// Measures a read of one line: the cost of a call without its bytes.
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
        // The remaining levels need time, too.
        const Deadline own =
            deadline.within(deadline.remaining() / static_cast<int>(kLevels - done));
        for (int turn = 0; turn < kByteTurns && (turn < kLeastTurns || !own.passed()); ++turn)
            measurement.turn();
        measurement.give(into, static_cast<std::size_t>(level));
        spread = std::max(spread, measurement.spread());
    }
}

}  // namespace pccl::costs
