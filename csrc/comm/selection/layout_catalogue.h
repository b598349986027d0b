// Schedules that are made for a group's own layout.
#pragma once

#include <memory>

#include "csrc/bootstrap/layout.h"
#include "csrc/schedule/catalogue.h"
#include "csrc/schedule/generators/link_graph.h"

namespace pccl::comm {

/// `known`, and the hierarchical schedules where the group has several hosts, of which one at least
/// has several ranks. Their names and tags are free, or else they are left out.
[[nodiscard]] std::shared_ptr<const schedule::Catalogue> catalogue_for(
    std::shared_ptr<const schedule::Catalogue> known, const bootstrap::Layout& layout);

/// Of `known` what sends along `links` alone, and schedules that are made for them, which pass
/// blocks on where there is no link (schedule/generators/along_links.h).
[[nodiscard]] std::shared_ptr<const schedule::Catalogue> catalogue_along(
    const schedule::LinkGraph& links, const schedule::Catalogue& known,
    const bootstrap::Layout& layout);

}  // namespace pccl::comm
