// SPDX-License-Identifier: Apache-2.0

// Sections of a capsule's file, before any verification.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/capsule/manifest.h"
#include "csrc/schedule/schedule.h"
#include "csrc/sys/crypto/sha256.h"

namespace pccl::capsule {

enum class FileVersion : std::uint8_t {
    kFirst = 1,
    kWithLinks = 2,      // manifest lists the links along which ranks send
    kOfManyNumbers = 3,  // contains whole files instead of programs (capsule_file.h)
};

/// Sections of a file whose lengths and digest are correct.
struct FileParts {
    FileVersion version = FileVersion::kFirst;
    std::string_view manifest;
    std::string_view programs;
    std::string_view signature;  // bytes behind the digest; empty: none
    sys::Digest digest{};
};
/// Splits bytes of any origin, which must outlive the parts.
[[nodiscard]] Result<FileParts> parts_of(std::string_view bytes);

/// File of programs for one number of ranks.
struct FileForRanks {
    int ranks = 0;
    std::string_view bytes;  // without a signature
};
/// Files inside a file, in ascending order of ranks, not verified yet. `whole` contains `parts`.
struct FilesInside {
    std::vector<FileForRanks> files;
    Stated common;  // statements of the first file, with which all others agree
};
[[nodiscard]] Result<FilesInside> files_inside(const FileParts& parts, std::string_view whole);

/// Reads a file. Errors contain the path.
[[nodiscard]] Result<std::string> bytes_of(const std::string& path);

/// Decoded content of a file, not verified.
struct FileContent {
    CapsuleDescription description;
    schedule::Schedule schedule;
};
[[nodiscard]] Result<FileContent> content_of(const FileParts& parts);

/// Returns the first line of a file.
[[nodiscard]] std::string head_of(FileVersion version, std::size_t manifest, std::size_t programs);
[[nodiscard]] std::string_view view_of(const sys::Digest& digest);

/// Returns the programs of a file for `ranks`, 0 for its only number, to display them beside an
/// error. They are not verified and must not run. Errors are those of CapsuleFile::for_ranks()
/// apart from those of verification.
[[nodiscard]] PCCL_API Result<schedule::Schedule> unproven_schedule(std::string_view bytes,
                                                                    int ranks);

}  // namespace pccl::capsule
