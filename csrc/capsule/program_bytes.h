// SPDX-License-Identifier: Apache-2.0

// Encoding of a schedule's programs: numbers in 7 bits per byte (LEB128), least significant first.
//
//   programs = symmetry program+        one program if it determines the others
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

#include <pccl/status.h>
#include "csrc/schedule/rotation.h"
#include "csrc/schedule/schedule.h"

namespace pccl::capsule {

/// Encodes programs. Equal schedules have equal bytes. `symmetry` is the schedule's.
[[nodiscard]] std::string program_bytes(const schedule::Schedule& schedule,
                                        schedule::Symmetry symmetry);
[[nodiscard]] inline std::string program_bytes(const schedule::Schedule& schedule) {
    return program_bytes(schedule, symmetry_of(schedule));
}

/// Decodes bytes of any origin within the limits; the result is not verified. The shape's ranks and
/// chunks must have been checked. kInvalidArgument contains the position of the faulty byte.
[[nodiscard]] Result<std::vector<schedule::Program>> parse_programs(std::string_view bytes,
                                                                    const schedule::Shape& shape);

}  // namespace pccl::capsule
