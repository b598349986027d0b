// Whether a file that was opened belongs to this user, so that what is in it is nobody else's word.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "csrc/base/status.h"

namespace pccl::sys {

/// Permission bits that other users, and other groups, must not have.
struct Forbidden {
    mode_t of_own;   // where the file belongs to this user
    mode_t of_root;  // where it belongs to root, who may share it with a group on purpose
};

/// ok for a regular file of this user or root without the forbidden bits; `fd` decides, not the
/// name, which may come to mean another file. kInvalidArgument says what is wrong, beginning with
/// `what`, and ends with what would be right.
[[nodiscard]] PCCL_API Status check_private(int fd, std::string_view what,
                                            const Forbidden& forbidden);

/// What is in a file that nobody else may write: what others can is their word, not this user's.
/// Follows no link. kUnavailable where there is none; kInvalidArgument as check_private() has it,
/// and for more than `most` bytes.
[[nodiscard]] PCCL_API Result<std::string> read_private(const std::string& path, std::size_t most);

/// In a folder for caches, what is kept of this host: FOLDER/pccl/WHAT-amd-epyc-9v74-2-node7.txt.
[[nodiscard]] PCCL_API std::string cached_file(std::string_view folder, std::string_view what);

/// Writes the file, in folders that are made where they are missing.
[[nodiscard]] PCCL_API Status write_cached(const std::string& path, const std::string& text);

}  // namespace pccl::sys
