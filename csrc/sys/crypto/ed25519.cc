// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/crypto/ed25519.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <cstddef>
#include <memory>

#include "csrc/base/assert.h"

namespace pccl::sys {
namespace {

template <auto Free>
struct Freed {
    template <typename T>
    void operator()(T* what) const {
        Free(what);
    }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Context = std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX_free>>;
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;

const unsigned char* bytes_of(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}

Key key_of(const SecretKey& secret) {
    Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, secret.data(), secret.size()));
    PCCL_ASSERT(key != nullptr);
    return key;
}

/// Refuses to supply a password.
int no_password(char* /*into*/, int /*size*/, int /*is_written*/, void* /*context*/) { return -1; }

}  // namespace

PublicKey public_key_of(const SecretKey& secret) {
    PublicKey found{};
    std::size_t size = found.size();
    const int done = EVP_PKEY_get_raw_public_key(key_of(secret).get(), found.data(), &size);
    PCCL_ASSERT(done == 1 && size == found.size());
    return found;
}

Signature sign(const SecretKey& secret, std::string_view message) {
    const Key key = key_of(secret);
    const Context context(EVP_MD_CTX_new());
    Signature signature{};
    std::size_t size = signature.size();
    const bool done =
        EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
        EVP_DigestSign(context.get(), signature.data(), &size, bytes_of(message), message.size()) ==
            1;
    PCCL_ASSERT(done && size == signature.size());
    return signature;
}

bool is_signed_by(const PublicKey& signer, std::string_view message, const Signature& signature) {
    const Key key(
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, signer.data(), signer.size()));
    const Context context(EVP_MD_CTX_new());
    return key != nullptr &&
           EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
           EVP_DigestVerify(context.get(), signature.data(), signature.size(), bytes_of(message),
                            message.size()) == 1;
}

Result<SecretKey> secret_key_in(std::string_view pem) {
    const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &no_password, nullptr));
    SecretKey secret{};
    std::size_t size = secret.size();
    if (key == nullptr || EVP_PKEY_id(key.get()) != EVP_PKEY_ED25519 ||
        EVP_PKEY_get_raw_private_key(key.get(), secret.data(), &size) != 1)
        return Status::invalid_argument(
            "this is no private Ed25519 key in PEM; openssl genpkey -algorithm ed25519 makes one");
    return secret;
}

}  // namespace pccl::sys
