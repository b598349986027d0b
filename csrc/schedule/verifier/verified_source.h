// Schedules that are handed over at run time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "csrc/schedule/source.h"
#include "csrc/schedule/verifier/verifier.h"

namespace pccl::schedule {

/// Chosen by the schedule's name, for its shape alone. Its cost is counted from its programs.
/// kInvalidArgument says what is wrong with it, as verify() does: it must be right whether input
/// and output are one memory or two (all_to_all only for two).
[[nodiscard]] PCCL_API Result<SourcePtr> source_of(const Schedule& schedule);

/// The same of a schedule that verify() has let pass with `verdict`. `digest` stands for all of it.
/// Programs are copied for whoever asks for them alone.
[[nodiscard]] PCCL_API ScheduleSource source_of(const std::shared_ptr<const Schedule>& verified,
                                                const Verdict& verdict, std::uint64_t digest);

/// What a schedule that switches phases does in one of them.
struct PartSource {
    std::string phase;  // PhasePart
    SourcePtr source;   // null where no rank does anything
};

/// Of a schedule that verify() has let pass: sources "name#0", "name#1", ..., each of which makes
/// its collective behind those before it alone.
[[nodiscard]] PCCL_API std::vector<PartSource> part_sources_of(const Schedule& verified,
                                                               const Verdict& verdict,
                                                               std::uint64_t digest);

}  // namespace pccl::schedule
