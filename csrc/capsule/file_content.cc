#include "csrc/capsule/file_content.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/base/words.h"
#include "csrc/capsule/limits.h"
#include "csrc/capsule/program_bytes.h"
#include "csrc/capsule/refusal.h"
#include "csrc/capsule/signature.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::capsule {
namespace {

constexpr std::string_view kMagic = "pccl-capsule";
constexpr int kNewest = static_cast<int>(FileVersion::kWithLinks);
constexpr std::size_t kDigestBytes = std::tuple_size_v<sys::Digest>;

}  // namespace

std::string_view view_of(const sys::Digest& digest) {
    return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string head_of(FileVersion version, std::size_t manifest, std::size_t programs) {
    return concat(kMagic, " ", static_cast<int>(version), " ", manifest, " ", programs, "\n");
}

Result<FileParts> parts_of(std::string_view bytes) {
    constexpr std::size_t kLongestHead = 64;
    std::string_view rest = bytes;
    std::string_view head = next_line(rest);
    if (head.size() > kLongestHead || next_word(head) != kMagic)
        return refuse("this is no capsule: it does not begin with ", kMagic);
    const auto version = number_in(next_word(head), 1, kNewest);
    if (!version)
        return refuse("this capsule is of no version from 1 to ", kNewest,
                      ", which is what this library reads");
    const auto manifest = number_in<std::size_t>(next_word(head), 0, kMostManifestBytes);
    const auto programs = number_in<std::size_t>(next_word(head), 0, kMostBytes);
    if (!manifest || !programs) return refuse("its first line does not say how long its parts are");
    const std::size_t length = *manifest + *programs + kDigestBytes;
    const std::string_view signature = rest.substr(std::min(length, rest.size()));
    if (length > rest.size() || (!signature.empty() && !is_like_seal(signature)))
        return refuse("it has ", bytes.size(), " bytes where ", bytes.size() - rest.size() + length,
                      " belong: it is truncated, or something follows");
    const std::string_view whole = bytes.substr(0, bytes.size() - signature.size());
    const sys::Digest digest = sys::sha256(whole.substr(0, whole.size() - kDigestBytes));
    if (view_of(digest) != rest.substr(*manifest + *programs, kDigestBytes))
        return refuse("its digest is not that of its bytes: it was damaged or changed");
    return FileParts{static_cast<FileVersion>(*version), rest.substr(0, *manifest),
                     rest.substr(*manifest, *programs), signature, digest};
}

Result<std::string> bytes_of(const std::string& path) {
    std::error_code error;
    if (!std::filesystem::exists(path, error))
        return Status::unavailable(concat(path, ": there is no such file"));
    if (!std::filesystem::is_regular_file(path, error))
        return Status::unavailable(concat(path, ": this is no file"));
    const auto size = std::filesystem::file_size(path, error);
    if (error || size > kMostBytes + kSealBytes)
        return refuse(path, ": has ", size, " bytes; at most ", kMostBytes, " are read");
    return sys::read_file(path, size);
}

Result<int> stated_ranks(const std::string& path) {
    PCCL_ASSIGN_OR_RETURN(const std::string bytes, bytes_of(path));
    const auto parts = parts_of(bytes);
    if (!parts.is_ok()) return parts.status().with_context(path);
    const auto stated = parse_manifest(parts->manifest);
    if (!stated.is_ok()) return stated.status().with_context(path);
    return stated->shape.ranks;
}

Result<FileContent> content_of(const FileParts& parts) {
    PCCL_ASSIGN_OR_RETURN(Stated stated, parse_manifest(parts.manifest));
    schedule::Schedule schedule{.name = stated.description.name,
                                .shape = stated.shape,
                                .programs = {},
                                .phases = std::move(stated.phases)};
    PCCL_ASSIGN_OR_RETURN(schedule.programs, parse_programs(parts.programs, stated.shape));
    return FileContent{std::move(stated.description), std::move(schedule)};
}

Result<schedule::Schedule> unproven_schedule(std::string_view bytes) {
    PCCL_ASSIGN_OR_RETURN(const FileParts parts, parts_of(bytes));
    PCCL_ASSIGN_OR_RETURN(FileContent content, content_of(parts));
    return std::move(content.schedule);
}

}  // namespace pccl::capsule
