// What `pccl tune` measured: the fastest algorithm by collective, ranks and size.
//
// Lines of text, each "all_reduce 4 65536 shm_two_shot": from blocks of 65536 bytes on, that
// algorithm is the fastest among 4 ranks of one host. "topology 0f3a..." says on which machine that
// was found (topology_hash()), "capsule ring4@85d1..." that this capsule, by its digest, was
// among what was measured; so is one called where it is the fastest. Lines that start with # say
// nothing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/collective/collective.h"
#include "csrc/schedule/source.h"

namespace pccl::comm {

/// 16 hexadecimal digits, alike where the speed of what ranks of a host do is: of the model and
/// number of its processors, those that this process may use, its caches and nodes of memory.
[[nodiscard]] PCCL_API std::string topology_hash();

/// "ring4@85d1...": what a tuning calls a capsule.
[[nodiscard]] std::string tuned_name(const schedule::ScheduleSource& capsule);

class Tuning {
   public:
    static constexpr std::size_t kMostBytes = bootstrap::kMostTuningBytes;

    /// kInvalidArgument names the line and what is wrong with it.
    [[nodiscard]] static Result<Tuning> parse(std::string_view text);

    /// The name of the fastest algorithm for blocks of `bytes` (0 where ranks see different
    /// lengths), as measured with the most ranks that are no more than `ranks`. Empty where nothing
    /// was.
    [[nodiscard]] std::string_view fastest(CollectiveKind kind, int ranks, std::size_t bytes) const;

    /// Whether this capsule was among what was measured.
    [[nodiscard]] bool has_measured(const schedule::ScheduleSource& capsule) const;
    /// Where; empty where that is not said.
    [[nodiscard]] const std::string& topology() const { return topology_; }

   private:
    struct Line {
        CollectiveKind kind = CollectiveKind::kAllReduce;
        int ranks = 0;
        std::size_t from_bytes = 0;
        std::string algorithm;
    };
    Status add(std::string_view line);
    static Result<Line> parse_line(std::string_view line);

    std::vector<Line> lines_;
    std::vector<std::string> capsules_;  // their tuned names
    std::string topology_;
};

/// Where this machine's tuning is kept: PCCL_TUNING_FILE, or else a file in the user's cache that
/// is named after the machine. Empty where the environment names no such place.
[[nodiscard]] PCCL_API std::string tuning_path();

/// What is kept there; empty without a file. What is no tuning, or that of another machine, is
/// named in a warning, and empty. kUnavailable where a file that PCCL_TUNING_FILE names cannot be
/// read; one in the cache is named in a warning, too.
[[nodiscard]] Result<std::string> load_tuning();

}  // namespace pccl::comm
