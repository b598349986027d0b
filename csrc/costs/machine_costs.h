// What the steps of a collective cost on a machine: times that predictions are made of.
//
// Lines of text, each "beat 0.21": microseconds of a step (of "tcp_byte" and "reader":
// nanoseconds); or "copy 0.02 0.03 0.05 0.11": nanoseconds a byte, by the cache level that holds
// what is touched, the last one for memory; "-" where a level was not measured. "caches 32768
// 1048576 33554432" says how large the levels are, and "machine", "cores", "boot", "date", "took",
// "load", "tries", "spread" and "quiet" how the figures came about. Figures that no line gives keep
// their defaults. Lines that start with # say nothing.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/status.h"

namespace pccl::costs {

struct Figure {
    double seconds = 0;
    bool is_measured = false;

    friend bool operator==(const Figure&, const Figure&) = default;
};

/// Where the bytes lie that a step touches: in a core's own caches, in the cache that cores share,
/// or in memory.
enum class Level { kFirst, kSecond, kLast, kMemory };
inline constexpr std::size_t kLevels = 4;

/// Seconds a byte, by Level.
using ByteFigures = std::array<Figure, kLevels>;

/// How measured figures came about.
struct Origin {
    std::string machine{};  // its processors, and how many cores may be used; empty: any
    std::string boot{};     // empty: any
    std::string date{};     // UTC, "2026-11-25T21:40:03Z"; empty: unknown
    int cores = 0;          // that its processes may use; 0: unknown
    double took = 0;        // milliseconds, to measure them; 0: unknown
    double load = 0;    // mean number of runnable threads in the minute before; of tries, the least
    int tries = 0;      // the best of so many measurements
    double spread = 0;  // how much longer a repeated step took mostly than at best: from 1 on
    bool is_quiet = false;  // nobody else took the cores meanwhile

    friend bool operator==(const Origin&, const Origin&) = default;
};

/// A value. The default one holds figures that are typical of servers.
struct MachineCosts {
    MachineCosts();

    Figure core_round_trip;         // a cache line handed to another core and back
    Figure shared_core_round_trip;  // a wake-up and back, between threads that share a core
    Figure wake;          // from the call that wakes a sleeper on another core until it runs
    Figure direct_start;  // of process_vm_readv(2)
    Figure tcp_round;     // over loopback: from a send until a receiver that looks has it
    Figure tcp_message;   // of that, the sender's own time
    Figure tcp_byte;      // of its time, while the other end keeps up
    ByteFigures copy;     // within one core's reach
    ByteFigures sum;      // float32, onto others
    ByteFigures write;    // what another core has read, plainly, as that core does, too
    ByteFigures take;     // copied, when another core has written it so, as that core does, too
    ByteFigures stream;   // what another core has read, past the caches, as that core does, too
    ByteFigures take_streamed;
    ByteFigures direct;        // process_vm_readv(2) of what another core has written
    ByteFigures direct_again;  // of what this core has read so before, and nobody written since
    std::array<std::size_t, kLevels - 1> cache_bytes;  // of Levels but memory
    Origin origin;

    static constexpr std::size_t kMostBytes = 4 * kKiB;

    /// kInvalidArgument names the line and what is wrong with it.
    [[nodiscard]] PCCL_API static Result<MachineCosts> parse(std::string_view text);
    /// What parse() takes; empty where nothing was measured.
    [[nodiscard]] PCCL_API std::string text() const;

    /// Whether any figure was.
    [[nodiscard]] PCCL_API bool is_measured() const;
    /// Whether what passes between two cores was: the round trip, the wake-up and TCP.
    [[nodiscard]] PCCL_API bool is_of_two_cores() const;
    /// The level that holds `bytes`; the last one, which others use, too, no more than its half.
    [[nodiscard]] PCCL_API Level level_of(std::size_t bytes) const;
    /// Takes what `other` has measured and this has not.
    PCCL_API void fill_up_from(const MachineCosts& other);

    friend bool operator==(const MachineCosts&, const MachineCosts&) = default;
};

/// Seconds a byte.
[[nodiscard]] inline double at(const ByteFigures& figures, Level level) {
    return figures[static_cast<std::size_t>(level)].seconds;
}

/// Seconds a byte that goes through memory which ranks share.
struct CoreTransfer {
    double give = 0;
    double take = 0;

    [[nodiscard]] double both() const { return give + take; }
};

/// Plainly or past the caches, whichever is faster: SharedCopy finds it.
[[nodiscard]] inline CoreTransfer core_transfer_at(Level level, const MachineCosts& costs) {
    const CoreTransfer plain{at(costs.write, level), at(costs.take, level)};
    const CoreTransfer streamed{at(costs.stream, level), at(costs.take_streamed, level)};
    return plain.both() <= streamed.both() ? plain : streamed;
}

struct NamedFigure {
    std::string_view name;
    std::string_view what;
    double unit;  // seconds
    Figure MachineCosts::*figure;
    bool takes_two_cores;  // to be measured
};
struct NamedByteFigures {
    std::string_view name;
    std::string_view what;
    ByteFigures MachineCosts::*figures;
};
[[nodiscard]] PCCL_API std::span<const NamedFigure> named_figures();
[[nodiscard]] PCCL_API std::span<const NamedByteFigures> named_byte_figures();

/// "measured 2026-11-25T21:40:03Z in 30 ms, load 0.1", "... on a busy machine", and why nothing
/// that passes between cores was; or "defaults, nothing was measured".
[[nodiscard]] PCCL_API std::string source_of(const MachineCosts& costs);
/// A line for each figure, with its source: "beat: 0.21 us, measured (a cache line handed to
/// another core and back)"; then the caches.
[[nodiscard]] PCCL_API std::vector<std::string> lines_of(const MachineCosts& costs);

}  // namespace pccl::costs
