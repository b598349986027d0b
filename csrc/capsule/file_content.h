// The file of a capsule, taken apart, before anything in it is proven.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "csrc/base/status.h"
#include "csrc/capsule/manifest.h"
#include "csrc/schedule/schedule.h"
#include "csrc/sys/crypto/sha256.h"

namespace pccl::capsule {

enum class FileVersion : std::uint8_t {
    kFirst = 1,
    kWithLinks = 2,  // where the manifest says along which links ranks send
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

/// Errors name the path.
[[nodiscard]] Result<std::string> bytes_of(const std::string& path);

/// For how many ranks a file says that it is. Errors as those of Capsule::read(), but for what only
/// its programs show.
[[nodiscard]] PCCL_API Result<int> stated_ranks(const std::string& path);

/// What they say, whether it is right or not.
struct FileContent {
    Description description;
    schedule::Schedule schedule;
};
[[nodiscard]] Result<FileContent> content_of(const FileParts& parts);

/// The first line of a file.
[[nodiscard]] std::string head_of(FileVersion version, std::size_t manifest, std::size_t programs);
[[nodiscard]] std::string_view view_of(const sys::Digest& digest);

/// The programs of a file that need not be right, to be shown beside what is wrong with them: they
/// must not be run. Errors as those of Capsule::parse(), but for what only a proof finds.
[[nodiscard]] PCCL_API Result<schedule::Schedule> unproven_schedule(std::string_view bytes);

}  // namespace pccl::capsule
