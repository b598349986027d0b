// SPDX-License-Identifier: Apache-2.0
#include "csrc/costs/model/layout_catalogue.h"

#include <set>
#include <vector>

#include "csrc/schedule/generators/hierarchical.h"
#include "csrc/schedule/source.h"

namespace pccl::costs {
namespace {

/// Returns the ranks of each host in the order of the layout; empty if a host's ranks are not
/// contiguous in it.
std::vector<int> ranks_by_host(const bootstrap::Layout& layout) {
    const topo::JobTopology& job = layout.links()->job();
    std::vector<int> sizes;
    std::set<int> seen;
    int latest = -1;
    for (const Rank rank : layout.order()) {
        const int host = job.host_of(rank);
        if (host == latest) {
            ++sizes.back();
            continue;
        }
        if (!seen.insert(host).second) return {};
        sizes.push_back(1);
        latest = host;
    }
    return sizes;
}

/// Returns the schedule in the order of the layout, or else laid along a ring of the links; null if
/// it needs other links.
schedule::SourcePtr carried_by(const schedule::LinkGraph& links, const schedule::SourcePtr& source,
                               const schedule::RankOrder& order, const schedule::RankOrder& ring) {
    const schedule::Shape shape = schedule::least_shape(*source, links.ranks());
    if (links.carries(*source, shape, order)) return source;
    if (ring.empty() || !source->follows_order || !links.carries(*source, shape, ring))
        return nullptr;
    return schedule::laid_along(source, ring).value();
}

}  // namespace

std::shared_ptr<const schedule::Catalogue> catalogue_for(
    std::shared_ptr<const schedule::Catalogue> known, const bootstrap::Layout& layout) {
    if (layout.is_on_one_host()) return known;
    auto own = std::make_shared<schedule::Catalogue>(*known);
    for (const schedule::SourcePtr& source : schedule::hierarchical(ranks_by_host(layout)))
        static_cast<void>(own->add(source));
    return own;
}

std::shared_ptr<const schedule::Catalogue> catalogue_along(const schedule::LinkGraph& links,
                                                           const schedule::Catalogue& known,
                                                           const bootstrap::Layout& layout) {
    auto own = std::make_shared<schedule::Catalogue>();
    const schedule::RankOrder ring = links.ring();
    for (const schedule::CollectiveKind kind :
         {schedule::CollectiveKind::kAllReduce, schedule::CollectiveKind::kAllGather,
          schedule::CollectiveKind::kReduceScatter})
        for (const schedule::SourcePtr& source : known.of(kind))
            if (const auto carried = carried_by(links, source, layout.order(), ring))
                static_cast<void>(own->add(carried));
    const auto made = schedule::along_links("along_links", links.ranks(), links.links());
    if (!made.is_ok()) return own;  // the ranks are disconnected
    for (const schedule::SourcePtr& source : *made) static_cast<void>(own->add(source));
    return own;
}

}  // namespace pccl::costs
