// SPDX-License-Identifier: Apache-2.0

// Set of transports that a peer or a buffer supports.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <pccl/status.h>

namespace pccl::transport {

enum class TransportKind : std::uint8_t { kLoopback, kShm, kTcp, kVerbs, kNvlink, kNetPlugin };
inline constexpr int kTransportKinds = 6;

/// Returns "shm", "tcp", ...: the spelling of PCCL_TRANSPORTS.
[[nodiscard]] PCCL_API std::string_view to_string(TransportKind kind);
/// Returns whether a process, or its device, reads and writes a peer's host memory over it without
/// help of the peer's process.
[[nodiscard]] constexpr bool is_one_sided(TransportKind kind) {
    return kind == TransportKind::kShm || kind == TransportKind::kVerbs;
}

class PCCL_API TransportFlags {
   public:
    constexpr TransportFlags() = default;
    constexpr TransportFlags(TransportKind kind)
        : bits_(bit(kind)) {}  // NOLINT: a kind is a set of one
    static constexpr TransportFlags all() { return from_bits((1U << kTransportKinds) - 1); }
    static constexpr TransportFlags from_bits(std::uint32_t bits) {
        TransportFlags flags;
        flags.bits_ = bits & ((1U << kTransportKinds) - 1);
        return flags;
    }
    /// Parses "shm,tcp"; empty text is the empty set. kInvalidArgument names the unknown word and
    /// lists the valid ones.
    static Result<TransportFlags> parse(std::string_view text);

    [[nodiscard]] constexpr bool has(TransportKind kind) const { return (bits_ & bit(kind)) != 0; }
    [[nodiscard]] constexpr bool is_empty() const { return bits_ == 0; }
    [[nodiscard]] constexpr std::uint32_t bits() const { return bits_; }
    [[nodiscard]] std::string to_string() const;

    [[nodiscard]] constexpr TransportFlags without(TransportFlags others) const {
        return from_bits(bits_ & ~others.bits_);
    }
    friend constexpr TransportFlags operator|(TransportFlags a, TransportFlags b) {
        return from_bits(a.bits_ | b.bits_);
    }
    friend constexpr TransportFlags operator&(TransportFlags a, TransportFlags b) {
        return from_bits(a.bits_ & b.bits_);
    }
    friend constexpr bool operator==(TransportFlags, TransportFlags) = default;

   private:
    static constexpr std::uint32_t bit(TransportKind kind) {
        return 1U << static_cast<unsigned>(kind);
    }
    std::uint32_t bits_ = 0;
};

}  // namespace pccl::transport
