// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/file_content.h"

#include <algorithm>
#include <cerrno>
#include <tuple>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/capsule/limits.h"
#include "csrc/capsule/program_bytes.h"
#include "csrc/capsule/signature.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::capsule {
namespace {

constexpr std::string_view kMagic = "pccl-capsule";
constexpr int kNewest = static_cast<int>(FileVersion::kOfManyNumbers);
constexpr std::size_t kDigestBytes = std::tuple_size_v<sys::Digest>;

/// Fields of the first line of a file.
struct Head {
    FileVersion version = FileVersion::kFirst;
    std::size_t line = 0;  // bytes, like the sizes of the other parts
    std::size_t manifest = 0;
    std::size_t programs = 0;
    /// Returns the bytes without a signature.
    [[nodiscard]] std::size_t file() const { return line + manifest + programs + kDigestBytes; }
};

Result<Head> head_in(std::string_view bytes) {
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
    if (!manifest || !programs) return refuse("its first line lacks the lengths of its parts");
    return Head{static_cast<FileVersion>(*version), bytes.size() - rest.size(), *manifest,
                *programs};
}

/// Returns the first field that must agree in the capsules of a file but differs; empty: none.
std::string_view difference(const Stated& first, const Stated& other) {
    const CapsuleDescription& one = first.description;
    const CapsuleDescription& two = other.description;
    if (one.name != two.name) return "name";
    if (first.shape.kind != other.shape.kind) return "collective";
    if (first.shape.root != other.shape.root) return "root";
    if (one.sizes != two.sizes) return "sizes";
    if (one.protocol != two.protocol) return "protocol";
    if (one.author != two.author) return "author";
    if (one.licence != two.licence) return "licence";
    return one.note != two.note ? "note" : "";
}

/// Splits concatenated files.
Result<FilesInside> split(std::string_view files) {
    FilesInside inside;
    while (!files.empty()) {
        if (inside.files.size() == kMostNumbersOfRanks)
            return refuse("it has capsules for more than ", kMostNumbersOfRanks,
                          " numbers of ranks");
        PCCL_ASSIGN_OR_RETURN(const Head head, head_in(files));
        if (head.version == FileVersion::kOfManyNumbers)
            return refuse("a capsule in it is for several numbers of ranks itself");
        const std::string_view file = files.substr(0, head.file());
        PCCL_ASSIGN_OR_RETURN(const FileParts parts, parts_of(file));
        PCCL_ASSIGN_OR_RETURN(Stated stated, parse_manifest(parts.manifest));
        const int ranks = stated.shape.ranks;
        if (inside.files.empty())
            inside.common = std::move(stated);
        else if (const int last = inside.files.back().ranks; ranks <= last)
            return refuse("a capsule for ", ranks, " ranks follows one for ", last,
                          "; numbers of ranks ascend, each once");
        else if (const auto key = difference(inside.common, stated); !key.empty())
            return refuse("its capsules for ", inside.files.front().ranks, " and ", ranks,
                          " ranks differ at \"", key, "\"");
        inside.files.push_back({ranks, file});
        files.remove_prefix(file.size());
    }
    if (inside.files.size() < 2)
        return refuse("it is for several numbers of ranks, and has capsules for ",
                      inside.files.size());
    return inside;
}

}  // namespace

std::string_view view_of(const sys::Digest& digest) {
    return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string head_of(FileVersion version, std::size_t manifest, std::size_t programs) {
    return concat(kMagic, " ", static_cast<int>(version), " ", manifest, " ", programs, "\n");
}

Result<FileParts> parts_of(std::string_view bytes) {
    PCCL_ASSIGN_OR_RETURN(const Head head, head_in(bytes));
    const std::string_view signature = bytes.substr(std::min(head.file(), bytes.size()));
    if (head.file() > bytes.size() || (!signature.empty() && !is_like_seal(signature)))
        return refuse("it has ", bytes.size(), " bytes where ", head.file(),
                      " belong: it is truncated, or something follows");
    const std::string_view hashed = bytes.substr(0, head.file() - kDigestBytes);
    const sys::Digest digest = sys::sha256(hashed);
    if (view_of(digest) != bytes.substr(hashed.size(), kDigestBytes))
        return refuse("its digest is not that of its bytes: it was damaged or changed");
    return FileParts{head.version, bytes.substr(head.line, head.manifest),
                     bytes.substr(head.line + head.manifest, head.programs), signature, digest};
}

Result<FilesInside> files_inside(const FileParts& parts, std::string_view whole) {
    if (parts.version != FileVersion::kOfManyNumbers) {
        PCCL_ASSIGN_OR_RETURN(Stated stated, parse_manifest(parts.manifest));
        return FilesInside{{{stated.shape.ranks, whole}}, std::move(stated)};
    }
    PCCL_ASSIGN_OR_RETURN(FilesInside inside, split(parts.programs));
    std::vector<int> numbers;
    numbers.reserve(inside.files.size());
    for (const FileForRanks& each : inside.files) numbers.push_back(each.ranks);
    const std::string manifest = common_manifest_text(inside.common, numbers);
    if (manifest != parts.manifest)
        return refuse("its manifest differs from its capsules, at ",
                      first_difference(parts.manifest, manifest));
    if (!whole.starts_with(head_of(parts.version, manifest.size(), parts.programs.size())))
        return refuse("it is not in the canonical form of capsules");
    return inside;
}

Result<std::string> bytes_of(const std::string& path) {
    constexpr std::size_t kMost = kMostBytes + kSealBytes;
    const UniqueFd file = open_to_read(path);
    if (!file.is_open() && errno == ENOENT)
        return Status::unavailable(concat(path, ": there is no such file"));
    if (!file.is_open()) return Status::from_errno(errno, concat("cannot read ", path));
    PCCL_TRY(sys::check_regular(file.get(), path));
    auto bytes = sys::read_open(file.get(), kMost + 1);
    if (!bytes.is_ok()) return bytes.status().with_context(path);
    if (bytes->size() > kMost)
        return refuse(path, ": has more than the ", kMost, " bytes that are read");
    return bytes;
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

Result<schedule::Schedule> unproven_schedule(std::string_view bytes, int ranks) {
    PCCL_ASSIGN_OR_RETURN(const FileParts whole, parts_of(bytes));
    PCCL_ASSIGN_OR_RETURN(
        const FilesInside inside,
        files_inside(whole, bytes.substr(0, bytes.size() - whole.signature.size())));
    const auto found = std::ranges::find_if(inside.files, [&](const FileForRanks& each) {
        return ranks == 0 ? inside.files.size() == 1 : each.ranks == ranks;
    });
    if (found == inside.files.end()) return refuse("it has no programs for ", ranks, " ranks");
    PCCL_ASSIGN_OR_RETURN(const FileParts parts, parts_of(found->bytes));
    PCCL_ASSIGN_OR_RETURN(FileContent content, content_of(parts));
    return std::move(content.schedule);
}

}  // namespace pccl::capsule
