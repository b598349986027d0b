// A capsule: the programs of one collective for one number of ranks, proven whenever they are read.
//
//   pccl-capsule <version> <bytes of the manifest> <bytes of the programs>\n
//   manifest: JSON, for people and for tools (manifest.h)
//   programs: program_bytes.h
//   SHA-256 of all bytes before it
//
// Bytes are canonical: one capsule has one file of a version, and a file in which anything was
// written otherwise is refused. What the manifest says of the programs is found again from them,
// never believed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/capsule/manifest.h"
#include "csrc/schedule/source.h"
#include "csrc/schedule/verifier/verified_source.h"
#include "csrc/sys/crypto/sha256.h"

namespace pccl::capsule {

struct FileParts;
enum class FileVersion : std::uint8_t;

/// A value that is verified: there is no other way to get one.
class PCCL_API Capsule {
   public:
    /// kInvalidArgument says what is wrong with the programs, as schedule::verify() does, or with
    /// the description. The schedule takes the description's name.
    [[nodiscard]] static Result<Capsule> make(const Description& description,
                                              schedule::Schedule schedule);
    /// From bytes of any origin, within bounded time and memory. Bytes that this process has proven
    /// and still uses, as of a capsule that several groups are given, are not proven again.
    /// CapsuleFile reads what is signed, or for several numbers of ranks.
    [[nodiscard]] static Result<Capsule> parse(std::string_view bytes);

    [[nodiscard]] const Description& description() const { return content_->description; }
    [[nodiscard]] const schedule::Schedule& schedule() const { return content_->schedule; }
    [[nodiscard]] const schedule::Verdict& verdict() const { return content_->findings.verdict; }
    /// JSON.
    [[nodiscard]] const std::string& manifest() const { return content_->manifest; }
    [[nodiscard]] const std::string& bytes() const { return content_->bytes; }
    /// Of the bytes before it.
    [[nodiscard]] const sys::Digest& digest() const { return content_->digest; }

    /// Of the file that it came in, by which groups know it: its own, but for one of several.
    [[nodiscard]] const sys::Digest& file_digest() const { return file_digest_; }
    [[nodiscard]] Capsule from_file(const sys::Digest& digest) const;

    /// Whether its programs switch phases of the network: then only its parts can be run.
    [[nodiscard]] bool switches_phases() const { return !schedule().phases.empty(); }
    [[nodiscard]] std::vector<schedule::PartSource> parts() const;
    /// Chosen for `sizes`; empty: for those of its description.
    [[nodiscard]] schedule::SourcePtr source(
        const std::optional<schedule::SizeRange>& sizes = {}) const;

   private:
    struct Content {
        Description description;
        schedule::Schedule schedule;
        Findings findings;
        std::string manifest;
        std::string bytes;
        sys::Digest digest{};
    };
    class Proven;
    /// In a file of `newest`, or of the version before where that says as much.
    [[nodiscard]] static Result<Capsule> made(const Description& description,
                                              schedule::Schedule schedule, FileVersion newest);
    /// Of bytes that are nothing but these parts.
    [[nodiscard]] static Result<Capsule> made_of(const FileParts& parts, std::string_view whole);
    explicit Capsule(std::shared_ptr<const Content> content)
        : content_(std::move(content)), file_digest_(content_->digest) {}

    std::shared_ptr<const Content> content_;
    sys::Digest file_digest_;
};

}  // namespace pccl::capsule
