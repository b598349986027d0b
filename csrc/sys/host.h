// SPDX-License-Identifier: Apache-2.0

// Identity and properties of this host, for sockets and memory.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>

#include <pccl/status.h>

namespace pccl::sys {

/// Returns the boot id and the inode of the network namespace, "<uuid>.<number>". It is equal in
/// all processes that one kernel runs in one network namespace. It is also equal in virtual
/// machines that were restored from one snapshot.
[[nodiscard]] PCCL_API Result<std::string> kernel_identity();

/// Returns the name of this host for other processes: PCCL_HOST_ID, or kernel_identity() where that
/// is unset.
[[nodiscard]] PCCL_API Result<std::string> host_identity();

/// Returns the effective user id of this process in its user namespace.
[[nodiscard]] PCCL_API std::uint32_t user_identity();

/// Returns the host name, "node7"; "unknown" where the kernel reports none.
[[nodiscard]] PCCL_API std::string host_name();

/// Returns the processor model and count, "amd-epyc-9v74-2". Equal machines have equal names.
[[nodiscard]] PCCL_API std::string machine_name();

/// Bytes of the data caches that a core uses: first level, second level, and the last one, which
/// cores share. 0 where the kernel reports none.
using CacheBytes = std::array<std::size_t, 3>;
[[nodiscard]] PCCL_API CacheBytes cache_bytes();

/// Returns the mean number of runnable threads in the last minute; 0 where it is unknown.
[[nodiscard]] PCCL_API double load_average();

/// Returns the limit of open descriptors of this process (ulimit -n).
[[nodiscard]] PCCL_API std::size_t most_descriptors();

/// Set of cores by number; higher numbers are left out.
using CoreSet = std::bitset<1024>;

/// Returns the cores that this thread may run on.
[[nodiscard]] PCCL_API CoreSet usable_cores();
/// Returns the cores that this thread's container and cpuset allow, although it may be bound to
/// fewer now.
[[nodiscard]] PCCL_API CoreSet allowed_cores();
/// Binds this thread; kUnavailable where it may run on none of the cores.
[[nodiscard]] PCCL_API Status run_on(const CoreSet& cores);
/// Returns the core that this thread runs on now.
[[nodiscard]] PCCL_API std::size_t current_core();

}  // namespace pccl::sys
