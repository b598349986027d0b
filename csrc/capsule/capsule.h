// SPDX-License-Identifier: Apache-2.0

// Capsule: the programs of one collective for one number of ranks, verified on every read.
//
//   pccl-capsule <version> <bytes of the manifest> <bytes of the programs>\n
//   manifest: JSON, for people and for tools (manifest.h)
//   programs: program_bytes.h
//   SHA-256 of all bytes before it
//
// The bytes are canonical: a capsule has exactly one file per version, and any other encoding is
// rejected. The manifest's statements about the programs are recomputed from the programs, never
// trusted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/capsule/manifest.h"
#include "csrc/schedule/source.h"
#include "csrc/schedule/verifier/verified_source.h"
#include "csrc/sys/crypto/sha256.h"

namespace pccl::capsule {

struct FileParts;
enum class FileVersion : std::uint8_t;

/// Verified value: every way to construct one verifies it.
class PCCL_API VerifiedCapsule {
   public:
    /// Makes a capsule; the schedule takes the description's name. kInvalidArgument: the programs
    /// have a fault, reported as by schedule::verify(), or the description has one.
    [[nodiscard]] static Result<VerifiedCapsule> make(const CapsuleDescription& description,
                                                      schedule::Schedule schedule);
    /// Parses bytes of any origin, within bounded time and memory. Bytes that this process has
    /// already verified and still uses, such as a capsule that several groups load, are not
    /// verified again. For signed files, and files for several numbers of ranks, use CapsuleFile.
    [[nodiscard]] static Result<VerifiedCapsule> parse(std::string_view bytes);

    [[nodiscard]] const CapsuleDescription& description() const { return content_->description; }
    [[nodiscard]] const schedule::Schedule& schedule() const { return content_->schedule; }
    [[nodiscard]] const schedule::Verdict& verdict() const { return content_->findings.verdict; }
    /// Returns JSON.
    [[nodiscard]] const std::string& manifest() const { return content_->manifest; }
    [[nodiscard]] const std::string& bytes() const { return content_->bytes; }
    /// Returns the SHA-256 of the bytes before it.
    [[nodiscard]] const sys::Digest& digest() const { return content_->digest; }

    /// Returns the digest of the file from which the capsule was read, by which groups identify it.
    /// It is digest() unless the file has several capsules.
    [[nodiscard]] const sys::Digest& file_digest() const { return file_digest_; }
    [[nodiscard]] VerifiedCapsule from_file(const sys::Digest& digest) const;

    /// Returns whether its programs switch phases of the network; then only its parts can run.
    [[nodiscard]] bool switches_phases() const { return !schedule().phases.empty(); }
    [[nodiscard]] std::vector<schedule::PartSource> parts() const;
    /// Returns a source for `sizes`; empty: for the sizes of its description.
    [[nodiscard]] schedule::SourcePtr source(
        const std::optional<schedule::SizeRange>& sizes = {}) const;

   private:
    struct Content {
        CapsuleDescription description;
        schedule::Schedule schedule;
        Findings findings;
        std::string manifest;
        std::string bytes;
        sys::Digest digest{};
    };
    class Proven;
    /// Makes a capsule in a file of version `newest`, or of the version before if that can express
    /// it.
    [[nodiscard]] static Result<VerifiedCapsule> made(const CapsuleDescription& description,
                                                      schedule::Schedule schedule,
                                                      FileVersion newest);
    /// Makes a capsule of bytes that consist of exactly these parts.
    [[nodiscard]] static Result<VerifiedCapsule> made_of(const FileParts& parts,
                                                         std::string_view whole);
    explicit VerifiedCapsule(std::shared_ptr<const Content> content)
        : content_(std::move(content)), file_digest_(content_->digest) {}

    std::shared_ptr<const Content> content_;
    sys::Digest file_digest_;
};

}  // namespace pccl::capsule
