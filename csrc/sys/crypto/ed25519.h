// SPDX-License-Identifier: Apache-2.0

// Ed25519 signatures (RFC 8032).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <pccl/status.h>

namespace pccl::sys {

using PublicKey = std::array<std::uint8_t, 32>;
using SecretKey = std::array<std::uint8_t, 32>;  // the seed
using Signature = std::array<std::uint8_t, 64>;

[[nodiscard]] PCCL_API PublicKey public_key_of(const SecretKey& secret);
[[nodiscard]] PCCL_API Signature sign(const SecretKey& secret, std::string_view message);
[[nodiscard]] PCCL_API bool is_signed_by(const PublicKey& signer, std::string_view message,
                                         const Signature& signature);

/// Reads a private key in PEM, as `openssl genpkey -algorithm ed25519` writes it. kInvalidArgument
/// for anything else, and for keys with a password.
[[nodiscard]] PCCL_API Result<SecretKey> secret_key_in(std::string_view pem);

}  // namespace pccl::sys
