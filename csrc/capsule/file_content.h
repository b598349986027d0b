// The file of a capsule, taken apart, before anything in it is proven.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/capsule/manifest.h"
#include "csrc/schedule/schedule.h"
#include "csrc/sys/crypto/sha256.h"

namespace pccl::capsule {

enum class FileVersion : std::uint8_t {
    kFirst = 1,
    kWithLinks = 2,      // where the manifest says along which links ranks send
    kOfManyNumbers = 3,  // of ranks: whole files instead of programs (capsule_file.h)
};

/// The parts of a file whose lengths and digest are right.
struct FileParts {
    FileVersion version = FileVersion::kFirst;
    std::string_view manifest;
    std::string_view programs;
    std::string_view signature;  // what follows; empty: nothing
    sys::Digest digest{};
};
/// From bytes of any origin, which must outlive them.
[[nodiscard]] Result<FileParts> parts_of(std::string_view bytes);

/// The file of programs for one number of ranks.
struct FileForRanks {
    int ranks = 0;
    std::string_view bytes;  // without a signature
};
/// Those that a file has, whose numbers of ranks ascend; they are proven by nothing yet. `whole` is
/// what `parts` are of.
struct FilesInside {
    std::vector<FileForRanks> files;
    Stated common;  // what the first says, and all others do
};
[[nodiscard]] Result<FilesInside> files_inside(const FileParts& parts, std::string_view whole);

/// Errors name the path.
[[nodiscard]] Result<std::string> bytes_of(const std::string& path);

/// What they say, whether it is right or not.
struct FileContent {
    Description description;
    schedule::Schedule schedule;
};
[[nodiscard]] Result<FileContent> content_of(const FileParts& parts);

/// The first line of a file.
[[nodiscard]] std::string head_of(FileVersion version, std::size_t manifest, std::size_t programs);
[[nodiscard]] std::string_view view_of(const sys::Digest& digest);

/// The programs of a file for so many ranks, 0 for those of its only number, to be shown beside
/// what is wrong with them: they need not be right, and must not be run. Errors as those of
/// CapsuleFile::for_ranks(), but for what only a proof finds.
[[nodiscard]] PCCL_API Result<schedule::Schedule> unproven_schedule(std::string_view bytes,
                                                                    int ranks);

}  // namespace pccl::capsule
