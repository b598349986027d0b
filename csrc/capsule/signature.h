// SPDX-License-Identifier: Apache-2.0

// Signature of a capsule: a line behind its bytes, "signature ed25519 <public key> <signature>",
// both in hexadecimal digits. It signs the digest and is not covered by it: a capsule's bytes and
// digest do not depend on its signer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/sys/crypto/ed25519.h"
#include "csrc/sys/crypto/sha256.h"

namespace pccl::capsule {

struct Seal {
    sys::PublicKey signer{};
    sys::Signature signature{};
};

[[nodiscard]] Seal sealed(const sys::Digest& digest, const sys::SecretKey& secret);
/// Length of line_of().
inline constexpr std::size_t kSealBytes = 1 + 18 + 64 + 1 + 128 + 1;
[[nodiscard]] std::string line_of(const Seal& seal);
/// Returns whether the text has the prefix and the length of a signature line.
[[nodiscard]] bool is_like_seal(std::string_view text);
/// Parses a line of line_of() and verifies it with the capsule's digest. kInvalidArgument: the line
/// is malformed, or the signature does not match.
[[nodiscard]] Result<Seal> parse_seal(std::string_view line, const sys::Digest& digest);

/// Returns 64 digits.
[[nodiscard]] PCCL_API std::string to_hex(const sys::PublicKey& key);

/// Public keys of trusted signers.
class PCCL_API TrustedKeys {
   public:
    /// Parses lines of 64 hexadecimal digits, each with an optional comment behind the key. Lines
    /// that begin with # are comments. kInvalidArgument contains the line.
    [[nodiscard]] static Result<TrustedKeys> parse(std::string_view text);
    /// Reads a file that this user or root owns and that nobody else may write, because a writer
    /// could add trusted keys. kInvalidArgument contains the path, also for a file without keys.
    [[nodiscard]] static Result<TrustedKeys> read(const std::string& path);

    /// Checks a signature. kInvalidArgument: it is absent, or its key is not trusted.
    [[nodiscard]] Status check(const std::optional<Seal>& seal) const;

   private:
    std::vector<sys::PublicKey> keys_;
};

}  // namespace pccl::capsule
