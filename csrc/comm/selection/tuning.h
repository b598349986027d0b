// SPDX-License-Identifier: Apache-2.0

// Measurements of `pccl tune`: the fastest algorithm by collective, ranks and size.
//
// The file consists of lines of text such as "all_reduce 4 65536 shm_two_shot": for blocks of 65536
// bytes and more, that algorithm is the fastest among 4 ranks of one host. "topology 0f3a..." names
// the measured machine (topology_hash()). "capsule ring4@85d1..." lists a capsule, by its digest,
// that was measured; lines name a capsule alike if it is the fastest. Lines that start with # are
// comments.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/bootstrap/roster.h"
#include "csrc/collective/collective.h"
#include "csrc/schedule/source.h"

namespace pccl::comm {

/// Returns 16 hexadecimal digits that are equal on machines of equal speed within a host. They
/// cover the model and number of processors, the processors that this process may use, the caches
/// and the memory nodes.
[[nodiscard]] PCCL_API std::string topology_hash();

/// Returns the name of a capsule in a tuning, "ring4@85d1...".
[[nodiscard]] std::string tuned_name(const schedule::ScheduleSource& capsule);

class Tuning {
   public:
    static constexpr std::size_t kMostBytes = bootstrap::kMostTuningBytes;

    /// Parses a tuning. kInvalidArgument names the line and the error.
    [[nodiscard]] static Result<Tuning> parse(std::string_view text);

    /// Returns the fastest algorithm for blocks of `bytes` bytes (0 if ranks have different
    /// lengths), measured with the largest number of ranks up to `ranks`. Empty: there is no
    /// measurement.
    [[nodiscard]] std::string_view fastest(CollectiveKind kind, int ranks, std::size_t bytes) const;

    /// Returns whether this capsule was measured.
    [[nodiscard]] bool has_measured(const schedule::ScheduleSource& capsule) const;
    /// Returns the measured machine; empty: not stated.
    [[nodiscard]] const std::string& topology() const { return topology_; }

   private:
    struct TuningLine {
        CollectiveKind kind = CollectiveKind::kAllReduce;
        int ranks = 0;
        std::size_t from_bytes = 0;
        std::string algorithm;
    };
    Status add(std::string_view line);
    static Result<TuningLine> parse_line(std::string_view line);

    std::vector<TuningLine> lines_;
    std::vector<std::string> capsules_;  // their tuned names
    std::string topology_;
};

/// Returns the file of this machine's tuning: PCCL_TUNING_FILE, or else a file in the user's cache
/// that is named after the machine. Empty if the environment names no such place.
[[nodiscard]] PCCL_API std::string tuning_path();

/// Returns the contents of that file; empty without a file. An invalid file, or one of another
/// machine, is reported in a warning, and the result is empty. kUnavailable if the file that
/// PCCL_TUNING_FILE names cannot be read; for the file in the cache that is a warning, too.
[[nodiscard]] Result<std::string> load_tuning();

}  // namespace pccl::comm
