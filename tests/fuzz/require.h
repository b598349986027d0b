// SPDX-License-Identifier: Apache-2.0

// What fuzzers take for granted.
#pragma once

#include <cstdlib>

/// Aborts, which a fuzzer reports, unless it holds.
inline void require(bool holds) {
    if (!holds) std::abort();
}
