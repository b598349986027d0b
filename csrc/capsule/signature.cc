// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/signature.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/base/open_error.h"
#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/sys/private_file.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::capsule {
namespace {

constexpr std::string_view kWord = "signature";
constexpr std::string_view kKind = "ed25519";
constexpr std::size_t kMostKeyBytes = 64 * kKiB;  // of a file of trusted keys

/// Returns the signed message. Its prefix ensures that a signature of other bytes is never valid
/// for a capsule.
std::string message_of(const sys::Digest& digest) {
    return concat("pccl-capsule 1 ", sys::to_hex(digest));
}

std::string hex_of(std::span<const std::uint8_t> bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : bytes) {
        text += kDigits[byte >> 4U];
        text += kDigits[byte & 15U];
    }
    return text;
}

std::optional<unsigned> digit_in(char c) {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
    return std::nullopt;
}

/// Decodes hexadecimal digits; returns false unless the text has exactly two for each byte.
bool from_hex(std::string_view text, std::span<std::uint8_t> bytes) {
    if (text.size() != 2 * bytes.size()) return false;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const auto high = digit_in(text[2 * i]);
        const auto low = digit_in(text[2 * i + 1]);
        if (!high || !low) return false;
        bytes[i] = static_cast<std::uint8_t>(*high * 16 + *low);
    }
    return true;
}

}  // namespace

Seal sealed(const sys::Digest& digest, const sys::SecretKey& secret) {
    return {.signer = sys::public_key_of(secret),
            .signature = sys::sign(secret, message_of(digest))};
}

std::string line_of(const Seal& seal) {
    return concat("\n", kWord, " ", kKind, " ", to_hex(seal.signer), " ", hex_of(seal.signature),
                  "\n");
}

bool is_like_seal(std::string_view text) {
    return text.size() == kSealBytes && text.substr(1).starts_with(kWord);
}

Result<Seal> parse_seal(std::string_view line, const sys::Digest& digest) {
    Seal seal;
    std::string_view rest = line.substr(line.starts_with('\n') ? 1 : 0);
    std::string_view words = next_line(rest);
    const bool is_one = next_word(words) == kWord && next_word(words) == kKind &&
                        from_hex(next_word(words), seal.signer) &&
                        from_hex(next_word(words), seal.signature);
    if (!is_one || line != line_of(seal))
        return Status::invalid_argument("the bytes after the capsule are no signature");
    if (!sys::is_signed_by(seal.signer, message_of(digest), seal.signature))
        return Status::invalid_argument(
            concat("its signature is not one of these bytes by the key ", to_hex(seal.signer)));
    return seal;
}

std::string to_hex(const sys::PublicKey& key) { return hex_of(key); }

Result<TrustedKeys> TrustedKeys::parse(std::string_view text) {
    TrustedKeys trusted;
    for (int number = 1; !text.empty(); ++number) {
        std::string_view line = next_line(text);
        if (is_comment(line)) continue;
        sys::PublicKey key{};
        if (!from_hex(next_word(line), key))
            return Status::invalid_argument(
                concat("line ", number, ": a public key has 64 digits, 0 to 9 and a to f"));
        trusted.keys_.push_back(key);
    }
    return trusted;
}

Result<TrustedKeys> TrustedKeys::read(const std::string& path) {
    constexpr mode_t kWriting = S_IWGRP | S_IWOTH;
    const std::string what = concat("the file of trusted keys ", path);
    const UniqueFd file = open_to_read(path);
    if (!file.is_open()) return open_error(errno, what);
    PCCL_TRY(sys::check_private(file.get(), what, {.of_own = kWriting, .of_root = kWriting}));
    PCCL_ASSIGN_OR_RETURN(const std::string text, sys::read_open(file.get(), kMostKeyBytes + 1));
    if (text.size() > kMostKeyBytes)
        return Status::invalid_argument(concat(what, " has more than ", kMostKeyBytes, " bytes"));
    auto trusted = parse(text);
    if (!trusted.is_ok()) return trusted.status().with_context(path);
    if (!trusted->keys_.empty()) return trusted;
    return Status::invalid_argument(
        concat(what, " has no key: every capsule would be refused; put one a line"));
}

Status TrustedKeys::check(const std::optional<Seal>& seal) const {
    if (!seal) return Status::invalid_argument("it is not signed: sign it with pccl capsule sign");
    if (std::ranges::find(keys_, seal->signer) != keys_.end()) return Status::ok();
    return Status::invalid_argument(
        concat("it is signed by ", to_hex(seal->signer), ", which is no trusted key here"));
}

}  // namespace pccl::capsule
