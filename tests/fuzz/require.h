// What fuzzers take for granted.
#pragma once

#include <cstdlib>

/// Aborts, which a fuzzer reports, unless it holds.
inline void require(bool holds) {
    if (!holds) std::abort();
}
