// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/capsule_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/capsule/extent.h"
#include "csrc/capsule/file_content.h"
#include "csrc/capsule/limits.h"
#include "csrc/capsule/manifest.h"
#include "csrc/capsule/signature.h"
#include "csrc/capsule/sizes.h"

namespace pccl::capsule {

namespace {

int ranks_of(const VerifiedCapsule& capsule) { return capsule.schedule().shape.ranks; }

/// Returns the file of several capsules, ordered by their numbers of ranks, without checking that
/// they match.
Result<std::string> joined(const std::vector<VerifiedCapsule>& capsules) {
    std::string inside;
    std::vector<int> ranks;
    for (const VerifiedCapsule& each : capsules) {
        inside += each.bytes();
        ranks.push_back(ranks_of(each));
    }
    const VerifiedCapsule& first = capsules.front();
    const std::string manifest = common_manifest_text(
        {.description = first.description(), .shape = first.schedule().shape, .phases = {}}, ranks);
    std::string bytes = concat(head_of(FileVersion::kOfManyNumbers, manifest.size(), inside.size()),
                               manifest, inside);
    bytes += view_of(sys::sha256(bytes));
    if (bytes.size() <= kMostBytes && manifest.size() <= kMostManifestBytes) return bytes;
    return refuse("it would have ", bytes.size(), " bytes; at most ", kMostBytes, " are read");
}

}  // namespace

CapsuleFile::CapsuleFile(const VerifiedCapsule& capsule)
    : bytes_(std::make_shared<const std::string>(capsule.bytes())),
      manifest_(capsule.manifest()),
      description_(capsule.description()),
      digest_(capsule.digest()),
      members_({{ranks_of(capsule), *bytes_, capsule.from_file(capsule.digest())}}) {}

Result<CapsuleFile> CapsuleFile::of(std::vector<VerifiedCapsule> capsules) {
    if (capsules.empty()) return refuse("a file has a capsule at least");
    if (capsules.size() == 1) return CapsuleFile(capsules.front());
    std::ranges::sort(capsules, {}, ranks_of);
    auto file = [&]() -> Result<CapsuleFile> {
        PCCL_ASSIGN_OR_RETURN(std::string bytes, joined(capsules));
        PCCL_ASSIGN_OR_RETURN(const CapsuleFile made, parse(std::move(bytes)));
        return made.proven();
    }();
    if (file.is_ok()) return file;
    return file.status().with_context(concat("capsule ", capsules.front().description().name));
}

Result<CapsuleFile> CapsuleFile::parse(std::string bytes) {
    PCCL_ASSIGN_OR_RETURN(FileParts parts, parts_of(bytes));
    CapsuleFile file;
    file.digest_ = parts.digest;
    if (!parts.signature.empty()) {
        PCCL_ASSIGN_OR_RETURN(file.seal_, parse_seal(parts.signature, parts.digest));
        bytes.resize(bytes.size() - parts.signature.size());
        PCCL_ASSIGN_OR_RETURN(parts, parts_of(bytes));
    }
    file.manifest_ = parts.manifest;
    file.bytes_ = std::make_shared<const std::string>(std::move(bytes));
    PCCL_ASSIGN_OR_RETURN(FilesInside inside, files_inside(parts, *file.bytes_));
    file.description_ = std::move(inside.common.description);
    for (const FileForRanks& each : inside.files)
        file.members_.push_back({each.ranks, each.bytes, std::nullopt});
    return file;
}

Result<CapsuleFile> CapsuleFile::read(const std::string& path) {
    PCCL_ASSIGN_OR_RETURN(std::string bytes, bytes_of(path));
    auto file = parse(std::move(bytes));
    if (!file.is_ok()) return file.status().with_context(path);
    file->path_ = path;
    return file;
}

std::vector<int> CapsuleFile::ranks() const {
    std::vector<int> ranks;
    ranks.reserve(members_.size());
    for (const ProgramEntry& each : members_) ranks.push_back(each.ranks);
    return ranks;
}

bool CapsuleFile::has(int ranks) const {
    return std::ranges::binary_search(members_, ranks, {}, &ProgramEntry::ranks);
}

std::string CapsuleFile::ranks_text() const { return capsule::ranks_text(ranks()); }

Result<VerifiedCapsule> CapsuleFile::for_ranks(int ranks) const {
    const auto found = std::ranges::lower_bound(members_, ranks, {}, &ProgramEntry::ranks);
    if (found != members_.end() && found->ranks == ranks) return capsule_of(*found);
    return in_this_file(
        refuse("capsule ", description_.name, " is for ", ranks_text(), " ranks, not for ", ranks));
}

Result<VerifiedCapsule> CapsuleFile::only() const {
    if (members_.size() == 1) return capsule_of(members_.front());
    return in_this_file(refuse("capsule ", description_.name, " is for ", ranks_text(),
                               " ranks: for_ranks(", members_.front().ranks,
                               ") is for one of them"));
}

Result<CapsuleFile> CapsuleFile::proven() const {
    CapsuleFile file = *this;
    VerificationSize together;
    for (ProgramEntry& each : file.members_) {
        PCCL_ASSIGN_OR_RETURN(each.capsule, capsule_of(each));
        together += extent_of(each.capsule->schedule());
        PCCL_TRY(in_this_file(check_extent(together)));
    }
    return file;
}

std::string CapsuleFile::signed_bytes() const {
    return seal_ ? bytes() + line_of(*seal_) : bytes();
}

CapsuleFile CapsuleFile::signed_with(const sys::SecretKey& secret) const {
    CapsuleFile copy = *this;
    copy.seal_ = sealed(digest(), secret);
    return copy;
}

Result<VerifiedCapsule> CapsuleFile::capsule_of(const ProgramEntry& member) const {
    if (member.capsule) return *member.capsule;
    const auto capsule = VerifiedCapsule::parse(member.bytes);
    if (capsule.is_ok()) return capsule->from_file(digest_);
    const bool is_only = members_.size() == 1;
    return in_this_file(
        is_only ? capsule.status()
                : capsule.status().with_context(concat("for ", member.ranks, " ranks")));
}

Status CapsuleFile::in_this_file(const Status& why) const {
    return path_.empty() ? why : why.with_context(path_);
}

namespace {

/// Returns nullopt if every signer is trusted.
Result<std::optional<TrustedKeys>> trusted_keys() {
    PCCL_TRY(check_settings());
    const std::string& path = process_config().trusted_keys;
    if (path.empty()) return std::optional<TrustedKeys>();
    auto keys = TrustedKeys::read(path);
    if (!keys.is_ok()) return keys.status().with_context("PCCL_TRUSTED_KEYS");
    return std::optional(*std::move(keys));
}

}  // namespace

Status check_trust() { return trusted_keys().status(); }

Status check_trusted(const CapsuleFile& file) {
    PCCL_ASSIGN_OR_RETURN(const auto keys, trusted_keys());
    if (!keys) return Status::ok();
    return keys->check(file.seal())
        .with_context(
            concat("PCCL_TRUSTED_KEYS does not let capsule ", file.description().name, " in"));
}

}  // namespace pccl::capsule
