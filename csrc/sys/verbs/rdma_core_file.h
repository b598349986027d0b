// SPDX-License-Identifier: Apache-2.0

// Files of rdma-core's libraries, which are opened by name at run time.
#pragma once

#include <string>
#include <string_view>

#include <pccl/status.h>
#include "csrc/base/text/text.h"

namespace pccl::sys::verbs {

/// Opens a library and returns its handle, which stays open. kUnavailable, with `package` as what
/// to install, where that is impossible. A name without "/" is searched by the dynamic linker.
[[nodiscard]] Result<void*> open_rdma_core_file(const std::string& name, std::string_view package);

/// Returns open(name): of the file that a setting names, where that is not empty, and else of the
/// usual one. kInvalidArgument with the setting's name where its file cannot be used.
template <typename Open>
auto open_chosen(std::string_view setting, const std::string& chosen, const std::string& usual,
                 Open open) -> decltype(open(usual)) {
    if (chosen.empty()) return open(usual);
    auto opened = open(chosen);
    if (opened.is_ok()) return opened;
    return Status::invalid_argument(concat(setting, ": ", opened.status().message()));
}

/// Returns the path, without symbolic links, of the file that contains `function`.
[[nodiscard]] std::string file_of(const void* function);

/// Returns the version of rdma-core in a path that ends in `name`.so.1.<minor>.<version>; empty:
/// the path has none.
[[nodiscard]] std::string rdma_core_version_in(const std::string& path, std::string_view name);

}  // namespace pccl::sys::verbs
