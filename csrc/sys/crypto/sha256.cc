// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/crypto/sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "csrc/base/assert.h"

namespace pccl::sys {

Digest hmac_sha256(std::span<const std::uint8_t> key, std::span<const std::uint8_t> message) {
    Digest digest{};
    unsigned size = 0;
    const auto* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), message.data(),
                            message.size(), digest.data(), &size);
    PCCL_ASSERT(done != nullptr && size == digest.size());
    return digest;
}

bool equal_in_constant_time(const Digest& a, const Digest& b) {
    return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Status fill_random(std::span<std::uint8_t> into) {
    if (RAND_bytes(into.data(), static_cast<int>(into.size())) == 1) return Status::ok();
    return Status::unavailable("the system gives no random bytes");
}

Digest sha256(std::string_view bytes) {
    Digest digest{};
    unsigned size = 0;
    const int done =
        EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
    PCCL_ASSERT(done == 1 && size == digest.size());
    return digest;
}

std::string to_hex(const Digest& digest) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : digest) {
        text += kDigits[byte >> 4U];
        text += kDigits[byte & 15U];
    }
    return text;
}

}  // namespace pccl::sys
