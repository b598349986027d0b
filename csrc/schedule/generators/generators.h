// SPDX-License-Identifier: Apache-2.0

// Catalogue of the built-in generators.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/schedule/catalogue.h"

namespace pccl::schedule {

/// Returns the sources ring, double_binary_tree, recursive_doubling, recursive_halving, bruck,
/// one_shot, two_shot, binomial, pairwise, pat and swing, for the collectives that each can make,
/// and any number of ranks.
///
/// The number of chunks above the least has a meaning in three cases. For ring, each further
/// multiple of the granularity runs side by side on its own channel. For chain (ring broadcast and
/// reduce), binomial broadcast and reduce, and double tree, each chunk is a message of a pipeline.
/// Elsewhere it has no effect: a message contains all chunks.
[[nodiscard]] PCCL_API const std::shared_ptr<const Catalogue>& built_in();

/// Returns each name once.
[[nodiscard]] PCCL_API const std::vector<std::string>& built_in_names();

/// Returns a built-in source. kInvalidArgument: the name is unknown, and the message lists the
/// known ones. kUnsupported: the generator makes other collectives.
[[nodiscard]] PCCL_API Result<SourcePtr> built_in(std::string_view name, CollectiveKind kind);

/// Generates a schedule by name. Errors are those of built_in() and check_shape().
[[nodiscard]] PCCL_API Result<Schedule> generate(std::string_view name, const Shape& shape);

}  // namespace pccl::schedule
