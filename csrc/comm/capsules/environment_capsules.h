// SPDX-License-Identifier: Apache-2.0

// Capsules from PCCL_CAPSULES, for programs that load none themselves.
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

/// Reads the capsules for `ranks` ranks from `paths`, sorted by name. `paths` lists files, and
/// folders of files *.capsule, separated by ":". Files that are no capsule are logged and skipped.
/// kUnavailable if a path does not exist or is neither file nor folder; kInvalidArgument for too
/// many files.
[[nodiscard]] Result<std::vector<capsule::VerifiedCapsule>> environment_capsules(
    std::string_view paths, int ranks);

/// Returns a digest of all capsules; 0 for none.
[[nodiscard]] std::uint64_t digest_of(const std::vector<capsule::VerifiedCapsule>& capsules);
/// Returns kMismatch naming the ranks that have other capsules than rank 0.
[[nodiscard]] Status check_same_capsules(const std::vector<bootstrap::Endpoint>& endpoints);

/// Returns `known` with those of `capsules` that can be added; the others are logged. Capsules that
/// `tuning` has measured are chosen for the sizes at which they were the fastest, others for the
/// sizes that they state.
[[nodiscard]] std::shared_ptr<const schedule::Catalogue> with_capsules(
    const std::shared_ptr<const schedule::Catalogue>& known,
    const std::vector<capsule::VerifiedCapsule>& capsules, const Tuning& tuning);

}  // namespace pccl::comm
