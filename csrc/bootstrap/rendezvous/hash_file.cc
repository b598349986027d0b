// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/hash_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "csrc/base/bytes.h"
#include "csrc/base/ids.h"
#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/rendezvous/entry.h"

namespace pccl::bootstrap {
namespace {

constexpr std::string_view kHeader("pccl store 2\n\0\0\0", 16);
constexpr std::size_t kChains = 4096;
constexpr std::size_t kHeadBytes = 8;
constexpr std::size_t kFirstRecord = kHeader.size() + kChains * kHeadBytes;
constexpr std::size_t kLargestFile = 256 * kMiB;
constexpr std::size_t kRecordHead = 8 + 8 + 4;
constexpr std::size_t kLargestRecord = kLongestKey + kLongestValue + 16;
// One read brings all of a short record.
constexpr std::size_t kShortRecord = 1 * kKiB;

std::uint64_t place_of_head(std::string_view key) {
    Digest digest;
    digest.add(key);
    return kHeader.size() + digest.value() % kChains * kHeadBytes;
}

}  // namespace

Result<std::size_t> HashFile::size() const {
    struct stat facts {};
    if (::fstat(file_.get(), &facts) != 0) return fault(errno, "cannot look at");
    return static_cast<std::size_t>(facts.st_size);
}

Status HashFile::create() {
    PCCL_TRY(write(0, kHeader));
    if (::ftruncate(file_.get(), static_cast<off_t>(kFirstRecord)) != 0)
        return fault(errno, "cannot write to");
    return Status::ok();
}

Result<bool> HashFile::is_complete() const {
    PCCL_ASSIGN_OR_RETURN(const std::size_t bytes, size());
    if (bytes == 0) return false;
    PCCL_ASSIGN_OR_RETURN(const std::string begin, read(0, kHeader.size()));
    if (!kHeader.starts_with(begin))
        return Status::invalid_argument(
            concat(path_, " is not a store of this version; name another file"));
    return bytes >= kFirstRecord;
}

Result<std::optional<std::string>> HashFile::find(std::string_view key) const {
    PCCL_ASSIGN_OR_RETURN(std::uint64_t at, head_of(key));
    while (at != 0) {
        PCCL_ASSIGN_OR_RETURN(Record record, record_at(at));
        if (record.key == key)
            return record.kind == Kind::kSet ? std::optional(std::move(record.value))
                                             : std::nullopt;
        at = record.older;
    }
    return std::optional<std::string>();
}

Status HashFile::set(std::string_view key, std::string_view value) {
    return append(Kind::kSet, key, value);
}

Status HashFile::remove(std::string_view key) { return append(Kind::kRemove, key, {}); }

Result<std::uint64_t> HashFile::head_of(std::string_view key) const {
    PCCL_ASSIGN_OR_RETURN(const std::string bytes, read(place_of_head(key), kHeadBytes));
    std::uint64_t head = 0;
    if (const Status whole = ByteReader(bytes).u64(head); !whole.is_ok())
        return Status::unavailable(concat("the store ", path_, " was changed by another program"));
    return head;
}

Result<HashFile::Record> HashFile::record_at(std::uint64_t offset) const {
    if (offset < kFirstRecord || offset >= kLargestFile) return damaged(offset);
    PCCL_ASSIGN_OR_RETURN(std::string bytes, read(offset, kShortRecord));
    Record record;
    ByteReader head(bytes);
    std::uint64_t self = 0;
    std::uint32_t length = 0;
    const bool has_head =
        head.u64(self).is_ok() && head.u64(record.older).is_ok() && head.u32(length).is_ok();
    // Chains lead backwards, so that every walk ends.
    if (!has_head || self != offset || record.older >= offset || length > kLargestRecord)
        return damaged(offset);
    const std::size_t whole = kRecordHead + length;
    if (whole > bytes.size()) {
        PCCL_ASSIGN_OR_RETURN(bytes, read(offset, whole));
    }
    if (whole > bytes.size()) return damaged(offset);
    ByteReader in(std::string_view(bytes).substr(kRecordHead, length));
    std::uint8_t kind = 0;
    const bool is_whole = in.u8(kind).is_ok() && in.text(record.key, kLongestKey).is_ok() &&
                          in.text(record.value, kLongestValue).is_ok() && in.finish().is_ok();
    record.kind = static_cast<Kind>(kind);
    if (!is_whole || (record.kind != Kind::kSet && record.kind != Kind::kRemove))
        return damaged(offset);
    return record;
}

Status HashFile::append(Kind kind, std::string_view key, std::string_view value) {
    PCCL_ASSIGN_OR_RETURN(const std::uint64_t older, head_of(key));
    PCCL_ASSIGN_OR_RETURN(const std::size_t offset, size());
    ByteWriter content;
    content.u8(static_cast<std::uint8_t>(kind));
    content.text(key);
    content.text(value);
    ByteWriter record;
    record.u64(offset);
    record.u64(older);
    record.text(content.take());
    if (record.size() > kLargestFile - std::min(offset, kLargestFile))
        return Status::resource_exhausted(concat("the store ", path_, " is full"));
    PCCL_TRY(write(offset, record.take()));
    ByteWriter head;
    head.u64(offset);
    return write(place_of_head(key), head.take());
}

Result<std::string> HashFile::read(std::uint64_t offset, std::size_t most) const {
    std::string bytes(most, '\0');
    ssize_t count = 0;
    do {
        count = ::pread(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    } while (count < 0 && errno == EINTR);
    if (count < 0) return fault(errno, "cannot read");
    bytes.resize(static_cast<std::size_t>(count));
    return bytes;
}

Status HashFile::write(std::uint64_t offset, std::string_view bytes) {
    std::size_t written = 0;
    while (written < bytes.size()) {
        const ssize_t count = ::pwrite(file_.get(), bytes.data() + written, bytes.size() - written,
                                       static_cast<off_t>(offset + written));
        if (count < 0 && errno != EINTR) return fault(errno, "cannot write to");
        if (count > 0) written += static_cast<std::size_t>(count);
    }
    return Status::ok();
}

Status HashFile::damaged(std::uint64_t offset) const {
    return Status::unavailable(concat("the store ", path_, " is damaged at byte ", offset));
}

Status HashFile::fault(int error, std::string_view what) const {
    return Status::from_errno(error, concat(what, " the store ", path_));
}

}  // namespace pccl::bootstrap
