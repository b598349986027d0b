// SPDX-License-Identifier: Apache-2.0

// Human-readable part of a capsule: JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/schedule/rotation.h"
#include "csrc/schedule/schedule.h"
#include "csrc/schedule/source.h"
#include "csrc/schedule/verifier/sums.h"
#include "csrc/schedule/verifier/verifier.h"

namespace pccl::capsule {

/// Statements of a capsule's author.
struct CapsuleDescription {
    std::string name{};  // letters a-z, digits and _
    std::string author{};
    std::string licence{};
    std::string note{};
    schedule::SizeRange sizes{};                          // for which it is intended
    std::optional<schedule::MessageProtocol> protocol{};  // for its messages between GPUs
    auto operator<=>(const CapsuleDescription&) const = default;
};

/// Checks a description. kInvalidArgument: a text is too long, or the name is invalid.
[[nodiscard]] Status check(const CapsuleDescription& description);

/// Properties computed from the programs.
struct Findings {
    schedule::Verdict verdict;
    schedule::Symmetry symmetry{};
    std::vector<schedule::SumOrder> sums;  // empty: none, or too many to list
    std::string links{};                   // links_text(); absent in the first version
};

/// Returns the same text for equal capsules: keys in a fixed order, ASCII only.
[[nodiscard]] std::string manifest_text(const CapsuleDescription& description,
                                        const schedule::Schedule& schedule,
                                        const Findings& findings);

/// Statements of a manifest that cannot be computed from the programs; parsing ignores the rest.
struct Stated {
    CapsuleDescription description;
    schedule::Shape shape;
    std::vector<std::string> phases;  // Schedule::phases
};
/// Returns the common manifest of a file of capsules for several, ascending numbers of ranks.
[[nodiscard]] std::string common_manifest_text(const Stated& common, const std::vector<int>& ranks);
/// Returns the first key whose value differs, comparing two manifests line by line.
[[nodiscard]] std::string first_difference(std::string_view stated, std::string_view found);

/// Parses text of any origin. kInvalidArgument contains the key.
[[nodiscard]] Result<Stated> parse_manifest(std::string_view text);

}  // namespace pccl::capsule
