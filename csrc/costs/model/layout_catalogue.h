// SPDX-License-Identifier: Apache-2.0

// Schedules for a group's own layout.
#pragma once

#include <memory>

#include "csrc/bootstrap/layout.h"
#include "csrc/schedule/catalogue.h"
#include "csrc/schedule/generators/link_graph.h"

namespace pccl::costs {

/// Returns `known` plus the hierarchical schedules if the group has several hosts, at least one of
/// them with several ranks. A hierarchical schedule is skipped if its name or tag is in use.
[[nodiscard]] std::shared_ptr<const schedule::Catalogue> catalogue_for(
    std::shared_ptr<const schedule::Catalogue> known, const bootstrap::Layout& layout);

/// Returns the schedules of `known` that use only `links`, plus schedules generated for these
/// links, which forward blocks where there is no direct link (schedule/generators/along_links.h).
[[nodiscard]] std::shared_ptr<const schedule::Catalogue> catalogue_along(
    const schedule::LinkGraph& links, const schedule::Catalogue& known,
    const bootstrap::Layout& layout);

}  // namespace pccl::costs
