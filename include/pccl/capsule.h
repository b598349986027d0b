// SPDX-License-Identifier: Apache-2.0

// Capsule: the verified programs of one collective, for one or more numbers of ranks, in a file.
//
//     PCCL_ASSIGN_OR_RETURN(const Capsule capsule, Capsule::load("ring.capsule"));
//     PCCL_TRY(comm->load(capsule).status());      // on all ranks
//
// Communicator::load() and Operator::load() take files of this kind.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/export.h>
#include <pccl/status.h>
#include <pccl/types.h>

namespace pccl {

namespace capsule {
class CapsuleFile;
}

/// Collective of an imported program whose file leaves it open.
struct CustomCollective {
    CollectiveKind kind = CollectiveKind::kAllReduce;  // what the program computes
    Rank root = 0;                                     // of rooted collectives
};

/// Content of a capsule file. An immutable value, cheap to copy, thread-safe. Its programs are
/// verified at their first use: a capsule never runs unverified.
class PCCL_API Capsule {
   public:
    /// Reads a file. Errors: kUnavailable where it cannot be read, and those of parse(); all
    /// contain the path.
    [[nodiscard]] static Result<Capsule> load(const std::string& path);
    /// Parses bytes of any origin, within bounded time and memory. Checks everything except the
    /// programs, including a signature. kInvalidArgument: the bytes are no capsule, or are damaged.
    [[nodiscard]] static Result<Capsule> parse(std::string bytes);
    /// Makes one capsule of several, in any order. kInvalidArgument: two have the same number of
    /// ranks, they differ in name, collective, root or description, a program is faulty, or they
    /// exceed the limits of a file.
    [[nodiscard]] static Result<Capsule> of(const std::vector<Capsule>& capsules);
    /// Imports a program of MSCCL in XML, of any origin. `file` names the text in error messages;
    /// an empty `name` is derived from the algorithm's. `custom` is valid for coll="custom" only.
    /// kInvalidArgument (faulty) and kUnsupported (not expressible) contain the line.
    [[nodiscard]] static Result<Capsule> import_msccl(
        std::string_view xml, std::string_view file, std::string_view name = {},
        const std::optional<CustomCollective>& custom = {});
    /// Imports an execution plan of MSCCL++ in JSON, of any origin; otherwise as import_msccl().
    /// Errors contain the line, GPU, thread block and operation.
    [[nodiscard]] static Result<Capsule> import_mscclpp(std::string_view json,
                                                        std::string_view file,
                                                        std::string_view name = {});

    /// Returns the name, by which groups choose it as an algorithm: letters a-z, digits and _.
    [[nodiscard]] const std::string& name() const;
    /// Returns the author; may be empty.
    [[nodiscard]] const std::string& author() const;
    /// Returns the licence; may be empty.
    [[nodiscard]] const std::string& licence() const;
    /// Returns the author's note; may be empty.
    [[nodiscard]] const std::string& note() const;
    /// Returns the sizes in bytes for which it is intended: "64KB..1MB", or "by name".
    [[nodiscard]] std::string sizes() const;
    /// Returns the numbers of ranks that it has programs for, in ascending order.
    [[nodiscard]] std::vector<int> ranks() const;
    /// Returns the manifest in JSON, which states properties of the programs.
    [[nodiscard]] const std::string& manifest() const;
    /// Returns the bytes of the file, with the signature if there is one.
    [[nodiscard]] std::string bytes() const;
    /// Returns the SHA-256 of the file without its signature, in 64 hexadecimal digits.
    [[nodiscard]] std::string digest() const;
    /// Returns the public key of a verified signature in 64 hexadecimal digits; empty: unsigned.
    [[nodiscard]] std::string signer() const;

    /// Verifies all programs. kInvalidArgument contains the number of ranks of a faulty one, its
    /// lane and step.
    [[nodiscard]] Status verify() const;
    /// Returns the collective that it performs. Verifies a program for that.
    [[nodiscard]] Result<CollectiveKind> kind() const;
    /// Returns XML of MSCCL from which import_msccl() makes a capsule with the same results.
    /// kInvalidArgument: there is no program for this number of ranks, or it is faulty.
    /// kUnsupported: a step does not fit MSCCL's model; the message contains it.
    [[nodiscard]] Result<std::string> export_msccl(int ranks) const;

    /// Makes a handle, for the library.
    explicit Capsule(std::shared_ptr<const capsule::CapsuleFile> file);
    /// Returns the internal object, for the library.
    [[nodiscard]] const capsule::CapsuleFile& file() const { return *file_; }

   private:
    std::shared_ptr<const capsule::CapsuleFile> file_;
};

}  // namespace pccl
