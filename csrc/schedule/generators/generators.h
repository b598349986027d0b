// The built-in ways to make collectives.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/schedule/catalogue.h"

namespace pccl::schedule {

/// ring, double_binary_tree, recursive_doubling, recursive_halving, bruck, one_shot, two_shot,
/// binomial, pairwise, pat and swing, for the collectives that each can make, and any number of
/// ranks.
///
/// What more chunks than the least mean: ring: that many times the granularity run side by side, a
/// channel each; chain (ring broadcast and reduce), binomial broadcast and reduce, double tree: a
/// message each, pipelined; elsewhere nothing, a message is as many chunks as there are.
[[nodiscard]] PCCL_API const std::shared_ptr<const Catalogue>& built_in();

/// Each once.
[[nodiscard]] PCCL_API const std::vector<std::string>& built_in_names();

/// kInvalidArgument names what there is; kUnsupported: it makes other collectives.
[[nodiscard]] PCCL_API Result<SourcePtr> built_in(std::string_view name, CollectiveKind kind);

/// By name. Errors as of built_in() and check_shape().
[[nodiscard]] PCCL_API Result<Schedule> generate(std::string_view name, const Shape& shape);

}  // namespace pccl::schedule
