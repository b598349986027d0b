// SPDX-License-Identifier: Apache-2.0

// Checks that an opened file belongs to this user, so that no other user can have written it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include <pccl/status.h>

namespace pccl::sys {

/// Permission bits that other users and groups must not have.
struct Forbidden {
    mode_t of_own;   // where the file belongs to this user
    mode_t of_root;  // where it belongs to root, who may share it with a group on purpose
};

/// Returns ok for a regular file of this user or root without the forbidden bits. It checks `fd`,
/// not the name, which may come to mean another file. kInvalidArgument begins with `what`, names
/// the fault and the remedy.
[[nodiscard]] PCCL_API Status check_private(int fd, std::string_view what,
                                            const Forbidden& forbidden);

/// Returns the first `most` bytes of a file that no other user may write. Follows no link.
/// kUnavailable where there is none; kInvalidArgument as check_private(), and where it cannot be
/// opened.
[[nodiscard]] PCCL_API Result<std::string> read_private(const std::string& path, std::size_t most);

/// Returns the path of this host's entry in a cache folder:
/// FOLDER/pccl/WHAT-amd-epyc-9v74-2-node7.txt.
[[nodiscard]] PCCL_API std::string cached_file(std::string_view folder, std::string_view what);

/// Writes the file and makes missing folders.
[[nodiscard]] PCCL_API Status write_cached(const std::string& path, const std::string& text);

}  // namespace pccl::sys
