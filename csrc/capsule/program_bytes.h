// The programs of a schedule as bytes: numbers of 7 bits a byte (LEB128), the lowest first.
//
//   programs = symmetry program+        one program where it says how the others follow
//   program  = scratch-chunks lane-count lane*
//   lane     = step-count step*
//   step     = (action + 16 * fields) field*   fields: bits for src, dst, from, to and after
//   src, dst = slice-count (buffer + 4 * offset, count)*
//   from, to = peer channel
//   after    = count (lane, step)*
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/schedule/rotation.h"
#include "csrc/schedule/schedule.h"

namespace pccl::capsule {

/// The same bytes for equal schedules, whoever made them. `symmetry` is the schedule's.
[[nodiscard]] std::string program_bytes(const schedule::Schedule& schedule,
                                        schedule::Symmetry symmetry);
[[nodiscard]] inline std::string program_bytes(const schedule::Schedule& schedule) {
    return program_bytes(schedule, symmetry_of(schedule));
}

/// From bytes of any origin; they, and what they say, need not be right, but keep the limits. The
/// shape's ranks and chunks must have been checked. kInvalidArgument names the byte.
[[nodiscard]] Result<std::vector<schedule::Program>> parse_programs(std::string_view bytes,
                                                                    const schedule::Shape& shape);

}  // namespace pccl::capsule
