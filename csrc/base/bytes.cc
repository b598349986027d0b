// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/bytes.h"

#include <cstring>
#include <limits>
#include <utility>

#include "csrc/base/assert.h"
#include "csrc/base/text/text.h"

namespace pccl {

void ByteWriter::append(std::uint64_t value, int width) {
    for (int byte = 0; byte < width; ++byte)
        bytes_.push_back(static_cast<char>((value >> (8 * byte)) & 0xFF));
}

void ByteWriter::raw(std::span<const std::byte> bytes) {
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void ByteWriter::text(std::string_view value) {
    PCCL_ASSERT(value.size() <= std::numeric_limits<std::uint32_t>::max());
    u32(static_cast<std::uint32_t>(value.size()));
    bytes_.append(value);
}

void ByteWriter::status(const Status& value, std::size_t longest) {
    u32(static_cast<std::uint32_t>(value.code()));
    i64(value.peer());
    text(std::string_view(value.message()).substr(0, longest));
}

std::string ByteWriter::take() { return std::exchange(bytes_, {}); }

Status ByteReader::need(std::size_t count) const {
    if (count <= remaining()) return Status::ok();
    return Status::invalid_argument(concat("truncated at byte ", bytes_.size(), ": ", count,
                                           " bytes are due at byte ", offset_));
}

template <typename Integer>
Status ByteReader::integer(Integer& value) {
    PCCL_TRY(need(sizeof(Integer)));
    std::uint64_t wide = 0;
    for (std::size_t byte = 0; byte < sizeof(Integer); ++byte)
        wide |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes_[offset_ + byte]))
                << (8 * byte);
    value = static_cast<Integer>(wide);
    offset_ += sizeof(Integer);
    return Status::ok();
}

Status ByteReader::u8(std::uint8_t& value) { return integer(value); }
Status ByteReader::u16(std::uint16_t& value) { return integer(value); }
Status ByteReader::u32(std::uint32_t& value) { return integer(value); }
Status ByteReader::u64(std::uint64_t& value) { return integer(value); }
Status ByteReader::i64(std::int64_t& value) { return integer(value); }

Status ByteReader::raw(std::span<std::byte> into) {
    PCCL_TRY(need(into.size()));
    if (!into.empty()) std::memcpy(into.data(), bytes_.data() + offset_, into.size());
    offset_ += into.size();
    return Status::ok();
}

Status ByteReader::text(std::string& value, std::size_t longest) {
    const std::size_t start = offset_;
    std::uint32_t length = 0;
    PCCL_TRY(u32(length));
    if (length > longest)
        return Status::invalid_argument(concat("a text of ", length, " bytes at byte ", start,
                                               " is longer than the ", longest, " allowed"));
    PCCL_TRY(need(length));
    value.assign(bytes_.substr(offset_, length));
    offset_ += length;
    return Status::ok();
}

Status ByteReader::status(Status& value, std::size_t longest) {
    const std::size_t start = offset_;
    std::uint32_t code = 0;
    std::int64_t peer = 0;
    std::string message;
    PCCL_TRY(u32(code));
    PCCL_TRY(i64(peer));
    PCCL_TRY(text(message, longest));
    if (code > static_cast<std::uint32_t>(StatusCode::kInternal))
        return Status::invalid_argument(concat("code ", code, " at byte ", start, " is no status"));
    value = Status(static_cast<StatusCode>(code), std::move(message), static_cast<Rank>(peer));
    return Status::ok();
}

Status ByteReader::finish() const {
    if (remaining() == 0) return Status::ok();
    return Status::invalid_argument(
        concat(remaining(), " bytes too many after the end at byte ", offset_));
}

}  // namespace pccl
