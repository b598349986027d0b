// SPDX-License-Identifier: Apache-2.0

// Pause of a spinning thread between two checks.
#pragma once

namespace pccl {

inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace pccl
