// SPDX-License-Identifier: Apache-2.0

// Size of the calls of schedules that the library does not know.
#pragma once

namespace pccl::comm {

inline constexpr int kScheduleRanks = 3;

inline constexpr std::size_t kScheduleCount = 5000;

}  // namespace pccl::comm
