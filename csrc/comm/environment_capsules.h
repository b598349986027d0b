// The capsules that PCCL_CAPSULES gives to programs that know nothing of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "csrc/bootstrap/endpoint.h"
#include "csrc/capsule/capsule.h"
#include "csrc/comm/selection/tuning.h"
#include "csrc/schedule/catalogue.h"

namespace pccl::comm {

/// Those for so many ranks, by their names, of `paths`: files, and folders of files *.capsule,
/// separated by ":". What is no capsule is named in the log, and left out. kUnavailable where a
/// path names nothing, or what is neither; kInvalidArgument for too many files.
[[nodiscard]] Result<std::vector<capsule::Capsule>> environment_capsules(std::string_view paths,
                                                                         int ranks);

/// Stands for all of them; 0 for none.
[[nodiscard]] std::uint64_t digest_of(const std::vector<capsule::Capsule>& capsules);
/// kMismatch names the ranks that have other capsules than rank 0.
[[nodiscard]] Status check_same_capsules(const std::vector<bootstrap::Endpoint>& endpoints);

/// `known`, and what can be added to it of `capsules`; the rest is named in the log. Those that
/// `tuning` has measured are chosen where they were the fastest, others for the sizes they state.
[[nodiscard]] std::shared_ptr<const schedule::Catalogue> with_capsules(
    const std::shared_ptr<const schedule::Catalogue>& known,
    const std::vector<capsule::Capsule>& capsules, const Tuning& tuning);

}  // namespace pccl::comm
