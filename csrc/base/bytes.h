// SPDX-License-Identifier: Apache-2.0

// Small blobs that ranks exchange (endpoints, memory descriptors): bounded, little-endian, no
// padding.
//
//     ByteWriter out;                            ByteReader in(blob);
//     out.u32(rank);                             PCCL_TRY(in.u32(rank));
//     out.text(host);                            PCCL_TRY(in.text(host, kLongestHost));
//     store.set(key, out.take());                PCCL_TRY(in.finish());
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <pccl/status.h>

namespace pccl {

class PCCL_API ByteWriter {
   public:
    void u8(std::uint8_t value) { append(value, 1); }
    void u16(std::uint16_t value) { append(value, 2); }
    void u32(std::uint32_t value) { append(value, 4); }
    void u64(std::uint64_t value) { append(value, 8); }
    /// Writes two's complement.
    void i64(std::int64_t value) { append(static_cast<std::uint64_t>(value), 8); }
    /// Writes the bytes without a length.
    void raw(std::span<const std::byte> bytes);
    /// Writes a u32 length, then the bytes.
    void text(std::string_view value);
    /// Writes code, peer, and at most `longest` bytes of the message.
    void status(const Status& value, std::size_t longest);

    [[nodiscard]] std::size_t size() const { return bytes_.size(); }
    /// Returns the blob; the writer is empty afterwards.
    [[nodiscard]] std::string take();

   private:
    void append(std::uint64_t value, int width);
    std::string bytes_;
};

/// Reader of blobs from a ByteWriter; any bytes are safe: it never reads beyond them and allocates
/// at most their number. An error is kInvalidArgument and names the place ("truncated at byte 12");
/// its target is then unchanged. The bytes must outlive the reader.
class PCCL_API ByteReader {
   public:
    explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

    [[nodiscard]] Status u8(std::uint8_t& value);
    [[nodiscard]] Status u16(std::uint16_t& value);
    [[nodiscard]] Status u32(std::uint32_t& value);
    [[nodiscard]] Status u64(std::uint64_t& value);
    [[nodiscard]] Status i64(std::int64_t& value);
    /// Reads exactly into.size() bytes.
    [[nodiscard]] Status raw(std::span<std::byte> into);
    /// Reads a text; refuses a length above `longest`.
    [[nodiscard]] Status text(std::string& value, std::size_t longest);
    /// Reads a status; refuses unknown codes, and a message above `longest`.
    [[nodiscard]] Status status(Status& value, std::size_t longest);

    [[nodiscard]] std::size_t offset() const { return offset_; }
    [[nodiscard]] std::size_t remaining() const { return bytes_.size() - offset_; }
    /// Checks the end: refuses bytes after the message.
    [[nodiscard]] Status finish() const;

   private:
    template <typename Integer>
    Status integer(Integer& value);
    [[nodiscard]] Status need(std::size_t count) const;

    std::string_view bytes_;
    std::size_t offset_ = 0;
};

}  // namespace pccl
