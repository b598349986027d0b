// SPDX-License-Identifier: Apache-2.0

// Steps of schedules as plain tuples, which Python makes and reads.
#pragma once

#include <pybind11/pybind11.h>

#include "csrc/schedule/schedule.h"

namespace pccl::bindings {

/// Parses [(scratch chunks, [[(action, src, dst, from, to, after), ...], ...]), ...], by rank and
/// lane. src and dst are [(buffer, offset, count), ...], from and to (peer, channel) or None, after
/// [(lane, step), ...]. Throws InvalidArgumentError for unknown names; the verifier checks the
/// numbers.
[[nodiscard]] std::vector<schedule::Program> programs_of(const pybind11::list& programs);

/// Returns the tuples of a schedule.
[[nodiscard]] pybind11::object raw_programs_of(const schedule::Schedule& schedule);

}  // namespace pccl::bindings
