// What a file has: a capsule, or one for each of several numbers of ranks, under one name.
//
// Of one number of ranks it is the capsule's bytes (capsule.h). Of several:
//
//   pccl-capsule 3 <bytes of the manifest> <bytes of the capsules>\n
//   manifest: JSON: what they have in common, and for how many ranks they are
//   capsules: as files of their own, numbers of ranks ascend
//   SHA-256 of all bytes before it
//
// Either may have a signature behind it (signature.h), which is of all of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/capsule/capsule.h"
#include "csrc/capsule/signature.h"
#include "csrc/sys/crypto/sha256.h"

namespace pccl::capsule {

/// A value. A program in it is proven when it is asked for, so that a group proves one alone.
class PCCL_API CapsuleFile {
   public:
    explicit CapsuleFile(const Capsule& capsule);
    /// In any order. kInvalidArgument where two are for as many ranks, or they are not of one name,
    /// collective and root and otherwise described alike, or more than a file has.
    [[nodiscard]] static Result<CapsuleFile> of(std::vector<Capsule> capsules);
    /// From bytes of any origin, within bounded time and memory: what does not need a proof is
    /// right, a signature, too.
    [[nodiscard]] static Result<CapsuleFile> parse(std::string bytes);
    /// Errors as parse(), and those of reading files, with the path, as those of for_ranks() then.
    [[nodiscard]] static Result<CapsuleFile> read(const std::string& path);

    /// They ascend.
    [[nodiscard]] std::vector<int> ranks() const;
    [[nodiscard]] bool has(int ranks) const;
    /// "2..4 8", as the manifest has them.
    [[nodiscard]] std::string ranks_text() const;
    /// kInvalidArgument where there is none, or it is wrong, as Capsule::parse() says. Known by the
    /// digest of this file.
    [[nodiscard]] Result<Capsule> for_ranks(int ranks) const;
    /// kInvalidArgument where there are several.
    [[nodiscard]] Result<Capsule> only() const;
    /// The same, with all of them proven. kInvalidArgument says for how many ranks one is wrong;
    /// limits count for all together.
    [[nodiscard]] Result<CapsuleFile> proven() const;

    /// Of each of them.
    [[nodiscard]] const Description& description() const { return description_; }
    [[nodiscard]] const std::string& manifest() const { return manifest_; }
    /// But for its signature.
    [[nodiscard]] const std::string& bytes() const { return *bytes_; }
    [[nodiscard]] std::string signed_bytes() const;
    /// Of the bytes before it.
    [[nodiscard]] const sys::Digest& digest() const { return digest_; }

    /// Who vouches for it; a signature that is there is right.
    [[nodiscard]] const std::optional<Seal>& seal() const { return seal_; }
    /// The same, signed; in place of whoever has signed it.
    [[nodiscard]] CapsuleFile signed_with(const sys::SecretKey& secret) const;

   private:
    struct ProgramEntry {
        int ranks = 0;
        std::string_view bytes;          // in bytes_
        std::optional<Capsule> capsule;  // once it is proven
    };
    CapsuleFile() = default;
    [[nodiscard]] Result<Capsule> capsule_of(const ProgramEntry& member) const;
    [[nodiscard]] Status in_this_file(const Status& why) const;

    std::shared_ptr<const std::string> bytes_;
    std::string path_;  // empty: it was not read from one
    std::string manifest_;
    Description description_;
    sys::Digest digest_{};
    std::optional<Seal> seal_;
    std::vector<ProgramEntry> members_;
};

}  // namespace pccl::capsule
