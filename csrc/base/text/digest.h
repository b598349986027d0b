// SPDX-License-Identifier: Apache-2.0

// FNV-1a, 64 bits (RFC 9923): equal values have equal digests. The hash does not resist an
// adversary.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace pccl {

/// Returns 16 hexadecimal digits.
[[nodiscard]] inline std::string hex_digits(std::uint64_t value) {
    std::array<char, 16> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
    const std::string shown(digits.data(), end);
    return std::string(digits.size() - shown.size(), '0') + shown;
}

class Digest {
   public:
    void add(std::string_view text) {
        for (const char c : text)
            state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
    }
    [[nodiscard]] std::uint64_t value() const { return state_; }
    /// Returns both halves combined: the checksum of small blobs.
    [[nodiscard]] std::uint32_t checksum() const {
        return static_cast<std::uint32_t>(state_ ^ (state_ >> 32));
    }
    [[nodiscard]] std::string text() const { return hex_digits(state_); }

   private:
    std::uint64_t state_ = 0xCBF29CE484222325ULL;
};

}  // namespace pccl
