// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/crypto/sha256.h"

#include <openssl/evp.h>

#include "csrc/base/assert.h"

namespace pccl::sys {

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
