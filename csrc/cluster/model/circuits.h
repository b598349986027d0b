// SPDX-License-Identifier: Apache-2.0

// Comparisons of circuits.
#pragma once

#include <string>

#include <pccl/export.h>
#include <pccl/phases.h>

namespace pccl::cluster {

/// Returns the change that makes `to` of `from`; both are in ascending order.
[[nodiscard]] PCCL_API Change change_between(const Circuits& from, const Circuits& to);
/// Returns whether each of `circuits` is in `from` or `to`: the state of a half-done change.
[[nodiscard]] PCCL_API bool is_between(const Circuits& circuits, const Circuits& from,
                                       const Circuits& to);
/// Returns the reason why one switch cannot have all of these circuits, which are in ascending
/// order: "two circuits begin at port 3"; empty if it can. `has_one_way_out`: the switch is
/// optical.
[[nodiscard]] PCCL_API std::string conflict_in(const Circuits& circuits, bool has_one_way_out);

}  // namespace pccl::cluster
