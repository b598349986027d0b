// SPDX-License-Identifier: Apache-2.0

// Cores that a process may use, for peers that may share them.
#pragma once

#include <cstdint>

#include <pccl/export.h>

namespace pccl::bootstrap {

struct CoreClaim {
    int cores = 1;               // that the process may use, or that its CPU quota allows
    std::uint64_t core_set = 0;  // digest: processes of a host with equal digests share these cores
    int tcp_threads = -1;        // PCCL_TCP_THREADS; -1: not set

    bool operator==(const CoreClaim&) const = default;

    /// Returns the claim of this process.
    [[nodiscard]] PCCL_API static CoreClaim of_process();
    /// Returns how many threads the process may run for transfers over TCP, one at least, if
    /// `sharers` processes share its cores equally.
    [[nodiscard]] PCCL_API int threads(int sharers) const;
};

}  // namespace pccl::bootstrap
