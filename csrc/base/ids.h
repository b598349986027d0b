// SPDX-License-Identifier: Apache-2.0

// Identifiers that all modules share.
#pragma once

#include <cstddef>

#include <pccl/types.h>

namespace pccl {

/// Index of an independent ordered stream between two ranks.
using ChannelId = int;

inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;

constexpr std::size_t at(int id) { return static_cast<std::size_t>(id); }

}  // namespace pccl
