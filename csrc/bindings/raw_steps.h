// The steps of schedules as plain tuples, in which Python makes and reads them.
#pragma once

#include <pybind11/pybind11.h>

#include "csrc/schedule/schedule.h"

namespace pccl::bindings {

/// [(scratch chunks, [[(action, src, dst, from, to, after), ...], ...]), ...]: by rank and lane.
/// src and dst are [(buffer, offset, count), ...], from and to (peer, channel) or None, after
/// [(lane, step), ...]. Throws InvalidArgumentError for names that there are not; what numbers mean
/// is the verifier's.
[[nodiscard]] std::vector<schedule::Program> programs_of(const pybind11::list& programs);

/// The other way round.
[[nodiscard]] pybind11::object raw_programs_of(const schedule::Schedule& schedule);

}  // namespace pccl::bindings
