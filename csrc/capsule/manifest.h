// The part of a capsule that people read: JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/schedule/rotation.h"
#include "csrc/schedule/schedule.h"
#include "csrc/schedule/source.h"
#include "csrc/schedule/verifier/sums.h"
#include "csrc/schedule/verifier/verifier.h"

namespace pccl::capsule {

/// What whoever makes a capsule says of it.
struct Description {
    std::string name{};  // of letters a-z, digits and _
    std::string author{};
    std::string licence{};
    std::string note{};
    schedule::SizeRange sizes{};                          // for which it is meant
    std::optional<schedule::MessageProtocol> protocol{};  // of its messages between GPUs
    auto operator<=>(const Description&) const = default;
};

/// kInvalidArgument where a text is too long, or a name is none.
[[nodiscard]] Status check(const Description& description);

/// What is found in the programs.
struct Findings {
    schedule::Verdict verdict;
    schedule::Symmetry symmetry{};
    std::vector<schedule::SumOrder> sums;  // empty: none, or too many to be listed
    std::string links{};                   // links_text(); not known to the first version
};

/// The same text for equal capsules: keys in order, ASCII alone.
[[nodiscard]] std::string manifest_text(const Description& description,
                                        const schedule::Schedule& schedule,
                                        const Findings& findings);

/// What a manifest says that does not follow from the programs; the rest is not looked at.
struct Stated {
    Description description;
    schedule::Shape shape;
    std::vector<std::string> phases;  // Schedule::phases
};
/// Of a file of capsules for several numbers of ranks, which ascend: what they have in common.
[[nodiscard]] std::string common_manifest_text(const Stated& common, const std::vector<int>& ranks);
/// The first key of two manifests, line by line, that says something else.
[[nodiscard]] std::string first_difference(std::string_view stated, std::string_view found);

/// From text of any origin. kInvalidArgument names the key.
[[nodiscard]] Result<Stated> parse_manifest(std::string_view text);

}  // namespace pccl::capsule
