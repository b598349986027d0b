// SPDX-License-Identifier: Apache-2.0

// Costs of the steps of a collective on a machine: times that predictions are based on.
//
// The format consists of lines of text. A line "beat 0.21" gives microseconds of a step
// ("tcp_byte": nanoseconds). A line "copy 0.02 0.03 0.05 0.11" gives nanoseconds a byte, by the
// cache level of the data, memory last; "-" means not measured. "caches 32768 1048576 33554432"
// lists the sizes of the levels; "machine", "cores", "boot", "date", "took", "load", "tries",
// "spread" and "quiet" describe the measurement. Figures without a line keep their defaults. Lines
// that start with # are comments.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/ids.h"

namespace pccl::costs {

struct Figure {
    double seconds = 0;
    bool is_measured = false;

    friend bool operator==(const Figure&, const Figure&) = default;
};

/// Location of the bytes that a step touches: a core's own caches, the cache that cores share, or
/// memory.
enum class Level { kFirst, kSecond, kLast, kMemory };
inline constexpr std::size_t kLevels = 4;

/// Seconds a byte, indexed by Level.
using ByteFigures = std::array<Figure, kLevels>;

/// Origin of measured figures.
struct Origin {
    std::string machine{};  // its processors and number of usable cores; empty: any
    std::string boot{};     // empty: any
    std::string date{};     // UTC, "2026-11-25T21:40:03Z"; empty: not recorded
    int cores = 0;          // usable by its processes; 0: not recorded
    double took = 0;        // milliseconds of measuring; 0: not recorded
    /// Mean number of runnable threads in the minute before; the minimum over the tries.
    double load = 0;
    int tries = 0;          // number of measurements, of which the best counts
    double spread = 0;      // median over minimum time of a repeated step, 1 or more
    bool is_quiet = false;  // no other process used the cores meanwhile

    friend bool operator==(const Origin&, const Origin&) = default;
};

/// Value type. Its default contains figures that are typical of servers.
struct MachineCosts {
    MachineCosts();

    Figure core_round_trip;         // a cache line to another core and back
    Figure shared_core_round_trip;  // a wake-up and back, between threads that share a core
    Figure wake;          // from the call that wakes a sleeper on another core until it runs
    Figure direct_start;  // fixed cost of process_vm_readv(2)
    Figure tcp_round;     // over loopback: from a send until a polling receiver has it
    Figure tcp_message;   // the sender's own part of that time
    Figure tcp_byte;      // sender's time while the receiver keeps up
    ByteFigures copy;     // within one core's caches
    ByteFigures sum;      // float32, added to other numbers
    /// Regular stores to data that another core has read, while that core does the same.
    ByteFigures write;
    /// Copies of data that another core has written so, while that core does the same.
    ByteFigures take;
    /// Non-temporal stores to data that another core has read, while that core does the same.
    ByteFigures stream;
    ByteFigures take_streamed;
    ByteFigures direct;        // process_vm_readv(2) of data that another core has written
    ByteFigures direct_again;  // the same data again, unchanged since this core's last such read
    std::array<std::size_t, kLevels - 1> cache_bytes;  // of all levels but memory
    Origin origin;

    static constexpr std::size_t kMostBytes = 4 * kKiB;

    /// Parses figures. kInvalidArgument names the line and the error.
    [[nodiscard]] PCCL_API static Result<MachineCosts> parse(std::string_view text);
    /// Returns text for parse(); empty if nothing was measured.
    [[nodiscard]] PCCL_API std::string text() const;

    /// Returns whether any figure was measured.
    [[nodiscard]] PCCL_API bool is_measured() const;
    /// Returns whether figures between two cores were measured: the round trip, the wake-up and
    /// TCP.
    [[nodiscard]] PCCL_API bool is_of_two_cores() const;
    /// Returns the level that holds `bytes`; for the last level, which is shared, only half its
    /// size counts.
    [[nodiscard]] PCCL_API Level level_of(std::size_t bytes) const;
    /// Takes the figures that `other` has measured and this has not.
    PCCL_API void fill_up_from(const MachineCosts& other);

    friend bool operator==(const MachineCosts&, const MachineCosts&) = default;
};

/// Returns seconds a byte.
[[nodiscard]] inline double at(const ByteFigures& figures, Level level) {
    return figures[static_cast<std::size_t>(level)].seconds;
}

/// Seconds a byte through memory that ranks share.
struct CoreTransfer {
    double give = 0;
    double take = 0;

    [[nodiscard]] double both() const { return give + take; }
};

/// Returns the faster of regular and non-temporal stores; SharedCopy finds it at run time.
[[nodiscard]] inline CoreTransfer core_transfer_at(Level level, const MachineCosts& costs) {
    const CoreTransfer plain{at(costs.write, level), at(costs.take, level)};
    const CoreTransfer streamed{at(costs.stream, level), at(costs.take_streamed, level)};
    return plain.both() <= streamed.both() ? plain : streamed;
}

struct NamedFigure {
    std::string_view name;
    std::string_view what;
    double unit;  // in seconds
    Figure MachineCosts::*figure;
    bool takes_two_cores;  // requires two cores
};
struct NamedByteFigures {
    std::string_view name;
    std::string_view what;
    ByteFigures MachineCosts::*figures;
};
[[nodiscard]] PCCL_API std::span<const NamedFigure> named_figures();
[[nodiscard]] PCCL_API std::span<const NamedByteFigures> named_byte_figures();

/// Returns the origin: "measured 2026-11-25T21:40:03Z in 30 ms, load 0.1", "... on a busy machine",
/// with the reason if nothing between cores was measured; or "defaults, nothing was measured".
[[nodiscard]] PCCL_API std::string source_of(const MachineCosts& costs);
/// Returns a line for each figure, with its source: "beat: 0.21 us, measured (a cache line handed
/// to another core and back)"; then the caches.
[[nodiscard]] PCCL_API std::vector<std::string> lines_of(const MachineCosts& costs);

}  // namespace pccl::costs
