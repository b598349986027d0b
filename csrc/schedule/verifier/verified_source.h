// SPDX-License-Identifier: Apache-2.0

// Schedules that are loaded at run time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "csrc/schedule/source.h"
#include "csrc/schedule/verifier/verifier.h"

namespace pccl::schedule {

/// Verifies a schedule and makes a source of it, selected by the schedule's name, for its shape
/// alone. Its cost is counted from its programs. kInvalidArgument reports a fault as verify() does:
/// the schedule must be correct out of place and in place (all_to_all: only out of place).
[[nodiscard]] PCCL_API Result<SourcePtr> source_of(const Schedule& schedule);

/// Makes a source of a schedule that verify() accepted with `verdict`. `digest` identifies the
/// whole schedule. The program of a rank is copied on each request.
[[nodiscard]] PCCL_API ScheduleSource source_of(const std::shared_ptr<const Schedule>& verified,
                                                const Verdict& verdict, std::uint64_t digest);

/// Source of one part of a schedule that switches phases.
struct PartSource {
    std::string phase;  // PhasePart
    SourcePtr source;   // null if no rank has a step in the part
};

/// Returns the parts of a schedule that verify() accepted: sources "name#0", "name#1", ... Each
/// makes its collective only after the parts before it.
[[nodiscard]] PCCL_API std::vector<PartSource> part_sources_of(const Schedule& verified,
                                                               const Verdict& verdict,
                                                               std::uint64_t digest);

}  // namespace pccl::schedule
