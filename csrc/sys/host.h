// Which host this is, as far as sockets and memory are concerned.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>

#include "csrc/base/status.h"

namespace pccl::sys {

/// Returns the boot id and the inode of the network namespace, "<uuid>.<number>": equal in all
/// processes that one kernel runs in one network namespace. Virtual machines that were restored
/// from one snapshot have equal ones, too.
[[nodiscard]] PCCL_API Result<std::string> kernel_identity();

/// Returns what names this host to other processes: PCCL_HOST_ID, else kernel_identity().
[[nodiscard]] PCCL_API Result<std::string> host_identity();

/// Returns the effective user of this process, as this process's user namespace numbers it.
[[nodiscard]] PCCL_API std::uint32_t user_identity();

/// As it calls itself, "node7"; "unknown" where the kernel does not say.
[[nodiscard]] PCCL_API std::string host_name();

/// The model of its processors and their number, "amd-epyc-9v74-2": alike on machines that are.
[[nodiscard]] PCCL_API std::string machine_name();

/// Bytes of the data caches that a core uses: first level, second, and the last one, which cores
/// share. 0 where the kernel does not say.
using CacheBytes = std::array<std::size_t, 3>;
[[nodiscard]] PCCL_API CacheBytes cache_bytes();

/// The mean number of runnable threads in the last minute; 0 where the kernel does not say.
[[nodiscard]] PCCL_API double load_average();

/// Descriptors that it may have open at a time (ulimit -n).
[[nodiscard]] PCCL_API std::size_t most_descriptors();

/// Cores by number; those beyond are left out.
using CoreSet = std::bitset<1024>;

/// Those that this thread may run on.
[[nodiscard]] PCCL_API CoreSet usable_cores();
/// Those that this thread's container and cpuset leave to it, though it is bound to fewer now.
[[nodiscard]] PCCL_API CoreSet allowed_cores();
/// Binds this thread; kUnavailable where it may run on none of them.
[[nodiscard]] PCCL_API Status run_on(const CoreSet& cores);
/// Where this thread runs now.
[[nodiscard]] PCCL_API std::size_t current_core();

}  // namespace pccl::sys
