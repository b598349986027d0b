// SPDX-License-Identifier: Apache-2.0

// Deadlines for tests that wait.
#pragma once

#include <chrono>

#include <pccl/deadline.h>

namespace pccl::fakes {

/// Longer than any wait in a test that passes.
inline constexpr std::chrono::seconds kTimeout{60};

inline Deadline test_deadline() { return Deadline::after(kTimeout); }
inline Deadline already() { return Deadline::after(Duration::zero()); }

}  // namespace pccl::fakes
