// SPDX-License-Identifier: Apache-2.0

// Files of rdma-core's libraries, which are opened by name at run time.
#pragma once

#include <string>
#include <string_view>

#include <pccl/status.h>

namespace pccl::sys::verbs {

/// Opens a library and returns its handle, which stays open. kUnavailable, with `package` as what
/// to install, where that is impossible. A name without "/" is searched by the dynamic linker.
[[nodiscard]] Result<void*> open_rdma_core_file(const std::string& name, std::string_view package);

/// Returns the path, without symbolic links, of the file that contains `function`.
[[nodiscard]] std::string file_of(const void* function);

/// Returns the version of rdma-core in a path that ends in `name`.so.1.<minor>.<version>; empty:
/// the path has none.
[[nodiscard]] std::string rdma_core_version_in(const std::string& path, std::string_view name);

}  // namespace pccl::sys::verbs
