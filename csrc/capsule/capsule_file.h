// SPDX-License-Identifier: Apache-2.0

// Capsule file: a capsule, or one for each of several numbers of ranks, under one name.
//
// For one number of ranks the file is the capsule's bytes (capsule.h). For several:
//
//   pccl-capsule 3 <bytes of the manifest> <bytes of the capsules>\n
//   manifest: JSON: their common fields, and their numbers of ranks
//   capsules: as files of their own, in ascending order of ranks
//   SHA-256 of all bytes before it
//
// Either may be followed by a signature (signature.h) over the whole file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/capsule/capsule.h"
#include "csrc/capsule/signature.h"
#include "csrc/sys/crypto/sha256.h"

namespace pccl::capsule {

/// Value type. A program in it is verified on first use, so that a group verifies only its own.
class PCCL_API CapsuleFile {
   public:
    explicit CapsuleFile(const VerifiedCapsule& capsule);
    /// Makes a file of capsules in any order. kInvalidArgument: two capsules have the same number
    /// of ranks, they differ in name, collective, root or description, or they exceed the limits of
    /// a file.
    [[nodiscard]] static Result<CapsuleFile> of(std::vector<VerifiedCapsule> capsules);
    /// Parses bytes of any origin, within bounded time and memory. Checks everything except the
    /// programs, including the signature.
    [[nodiscard]] static Result<CapsuleFile> parse(std::string bytes);
    /// Reads a file. Errors are those of parse() and of file input, and contain the path, as do
    /// later errors of for_ranks().
    [[nodiscard]] static Result<CapsuleFile> read(const std::string& path);

    /// Returns the numbers of ranks in ascending order.
    [[nodiscard]] std::vector<int> ranks() const;
    [[nodiscard]] bool has(int ranks) const;
    /// Returns "2..4 8", as in the manifest.
    [[nodiscard]] std::string ranks_text() const;
    /// Returns the verified capsule for this number of ranks, identified by the digest of this
    /// file. kInvalidArgument: there is none, or it is faulty, as reported by
    /// VerifiedCapsule::parse().
    [[nodiscard]] Result<VerifiedCapsule> for_ranks(int ranks) const;
    /// Returns the only capsule. kInvalidArgument: there are several.
    [[nodiscard]] Result<VerifiedCapsule> only() const;
    /// Returns a copy in which all capsules are verified; the limits apply to their total.
    /// kInvalidArgument contains the number of ranks of a faulty one.
    [[nodiscard]] Result<CapsuleFile> proven() const;

    /// Returns the common description.
    [[nodiscard]] const CapsuleDescription& description() const { return description_; }
    [[nodiscard]] const std::string& manifest() const { return manifest_; }
    /// Returns the bytes without the signature.
    [[nodiscard]] const std::string& bytes() const { return *bytes_; }
    [[nodiscard]] std::string signed_bytes() const;
    /// Returns the SHA-256 of the bytes before it.
    [[nodiscard]] const sys::Digest& digest() const { return digest_; }

    /// Returns the signature, which was verified; empty: unsigned.
    [[nodiscard]] const std::optional<Seal>& seal() const { return seal_; }
    /// Returns a signed copy, in which this signature replaces any other.
    [[nodiscard]] CapsuleFile signed_with(const sys::SecretKey& secret) const;

   private:
    struct ProgramEntry {
        int ranks = 0;
        std::string_view bytes;                  // in bytes_
        std::optional<VerifiedCapsule> capsule;  // once it is verified
    };
    CapsuleFile() = default;
    [[nodiscard]] Result<VerifiedCapsule> capsule_of(const ProgramEntry& member) const;
    [[nodiscard]] Status in_this_file(const Status& why) const;

    std::shared_ptr<const std::string> bytes_;
    std::string path_;  // empty: not read from a file
    std::string manifest_;
    CapsuleDescription description_;
    sys::Digest digest_{};
    std::optional<Seal> seal_;
    std::vector<ProgramEntry> members_;
};

/// Checks PCCL_TRUSTED_KEYS. kInvalidArgument: its file is unusable. Groups call it at their
/// creation, so that a missing file is reported before the first capsule is loaded.
[[nodiscard]] PCCL_API Status check_trust();

/// Checks a capsule's signer. Returns ok if PCCL_TRUSTED_KEYS is unset, or if one of its keys has
/// signed the file; otherwise kInvalidArgument, also for an unusable key file.
[[nodiscard]] PCCL_API Status check_trusted(const CapsuleFile& file);

}  // namespace pccl::capsule
