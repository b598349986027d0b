// SPDX-License-Identifier: Apache-2.0

// Anonymous files in memory that processes share.
#pragma once

#include <cstddef>
#include <string>

#include <pccl/status.h>
#include "csrc/base/unique_fd.h"

namespace pccl::sys {

/// Makes a file of `bytes` zeroes with a sealed size, so that accesses to its mappings cannot
/// fault. `name` shows in /proc/<pid>/maps. Pages are allocated at their first use. kUnavailable
/// names the limit where this process may not write files of that size (ulimit -f); kUnsupported
/// means that the kernel or a system call filter refuses; kResourceExhausted that no descriptor or
/// memory is left.
[[nodiscard]] PCCL_API Result<UniqueFd> make_memory_file(const std::string& name,
                                                         std::size_t bytes);

/// Makes later first uses of the file's pages, by any process, prefer the memory of NUMA node
/// `node`. Does nothing where the kernel or a system call filter refuses, or there is no such node.
PCCL_API void prefer_numa_node(const UniqueFd& file, std::size_t bytes, int node);

}  // namespace pccl::sys
