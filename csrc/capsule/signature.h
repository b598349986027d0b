// Who vouches for a capsule: a line behind its bytes, "signature ed25519 <public key> <signature>",
// both in hexadecimal digits. It signs the digest, and is no part of what that is made of: a
// capsule is the same, and has the same digest, whoever signed it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/sys/crypto/ed25519.h"
#include "csrc/sys/crypto/sha256.h"

namespace pccl::capsule {

struct Seal {
    sys::PublicKey signer{};
    sys::Signature signature{};
};

[[nodiscard]] Seal sealed(const sys::Digest& digest, const sys::SecretKey& secret);
/// Of line_of().
inline constexpr std::size_t kSealBytes = 1 + 18 + 64 + 1 + 128 + 1;
[[nodiscard]] std::string line_of(const Seal& seal);
/// Begins as one, and is as long.
[[nodiscard]] bool is_like_seal(std::string_view text);
/// Of what line_of() gives, with the capsule's digest. kInvalidArgument where it is none, or not of
/// these bytes.
[[nodiscard]] Result<Seal> parse_seal(std::string_view line, const sys::Digest& digest);

/// 64 digits.
[[nodiscard]] PCCL_API std::string to_hex(const sys::PublicKey& key);

/// Public keys whose owners are trusted.
class PCCL_API TrustedKeys {
   public:
    /// A key of 64 hexadecimal digits a line, and what a person wants to say behind it; lines that
    /// begin with # say nothing. kInvalidArgument names the line.
    [[nodiscard]] static Result<TrustedKeys> parse(std::string_view text);
    /// Of a file that this user or root owns, and that nobody else may write: who can, says whom to
    /// trust. kInvalidArgument with its path, also where it has no key.
    [[nodiscard]] static Result<TrustedKeys> read(const std::string& path);

    /// kInvalidArgument where nobody signed it, or somebody whose key is not here.
    [[nodiscard]] Status check(const std::optional<Seal>& seal) const;

   private:
    std::vector<sys::PublicKey> keys_;
};

}  // namespace pccl::capsule
