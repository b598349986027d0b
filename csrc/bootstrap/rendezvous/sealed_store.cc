// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/sealed_store.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "csrc/base/bytes.h"
#include "csrc/base/text/text.h"

namespace pccl::bootstrap {
namespace {

constexpr std::string_view kMark = "pccl sealed 1\n";

std::span<const std::uint8_t> bytes_of(std::string_view text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// Parts of an entry: the mark, the proof, the value.
struct Sealed {
    sys::Digest proof{};
    std::string_view value;
};

std::string joined(const Sealed& sealed) {
    ByteWriter entry;
    entry.raw(std::as_bytes(std::span(kMark)));
    entry.raw(std::as_bytes(std::span(sealed.proof)));
    entry.raw(std::as_bytes(std::span(sealed.value)));
    return entry.take();
}

std::optional<Sealed> split(std::string_view entry) {
    Sealed sealed;
    if (!entry.starts_with(kMark)) return std::nullopt;
    entry.remove_prefix(kMark.size());
    if (entry.size() < sealed.proof.size()) return std::nullopt;
    std::memcpy(sealed.proof.data(), entry.data(), sealed.proof.size());
    sealed.value = entry.substr(sealed.proof.size());
    return sealed;
}

}  // namespace

// Handshakes prove the same secrets, so the key is derived: a proof of a handshake must not be
// valid for an entry.
SealedStore::SealedStore(std::shared_ptr<Store> store, const transport::Secret& secret)
    : store_(std::move(store)), key_(sys::hmac_sha256(secret, bytes_of("pccl store entries"))) {}

sys::Digest SealedStore::proof_of(std::string_view key, std::string_view value) const {
    ByteWriter named;
    named.text(key);
    named.raw(std::as_bytes(std::span(value)));
    return sys::hmac_sha256(key_, bytes_of(named.take()));
}

Status SealedStore::set(const std::string& key, const std::string& value) {
    return store_->set(key, joined({proof_of(key, value), value}));
}

Result<std::string> SealedStore::get(const std::string& key, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const std::string entry, store_->get(key, deadline));
    const std::optional<Sealed> sealed = split(entry);
    if (sealed && sys::equal_in_constant_time(sealed->proof, proof_of(key, sealed->value)))
        return std::string(sealed->value);
    return Status::invalid_argument(
        concat("\"", key, "\" in the rendezvous store does not prove the secret of ",
               "PCCL_SECRET_FILE: give all ranks the same file; else a stranger writes there"));
}

Result<std::int64_t> SealedStore::add(const std::string& key, std::int64_t /*delta*/) {
    return Status::unsupported(concat("\"", key, "\": a sealed store has no counters"));
}

Status SealedStore::remove(const std::string& key) { return store_->remove(key); }

Result<std::string> unproven_value(Store& store, const std::string& key) {
    const Deadline at_once = Deadline::after(Duration::zero());
    auto* const sealed_store = dynamic_cast<SealedStore*>(&store);
    PCCL_ASSIGN_OR_RETURN(std::string entry, sealed_store == nullptr
                                                 ? store.get(key, at_once)
                                                 : sealed_store->entry(key, at_once));
    const std::optional<Sealed> sealed = split(entry);
    return sealed ? std::string(sealed->value) : std::move(entry);
}

Status check_unsealed(std::string_view entry) {
    if (!split(entry)) return Status::ok();
    return Status::invalid_argument(
        "another rank has a PCCL_SECRET_FILE, this one has none: give all ranks the same file");
}

}  // namespace pccl::bootstrap
