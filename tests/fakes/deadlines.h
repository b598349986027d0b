// Deadlines for tests that wait.
#pragma once

#include <chrono>

#include "csrc/base/clock.h"

namespace pccl::fakes {

/// Longer than any wait in a test that passes.
inline constexpr std::chrono::seconds kPatience{60};

inline Deadline patience() { return Deadline::after(kPatience); }
inline Deadline already() { return Deadline::after(Duration::zero()); }

}  // namespace pccl::fakes
