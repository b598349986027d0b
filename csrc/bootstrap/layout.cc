// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/layout.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"

namespace pccl::bootstrap {

Result<std::shared_ptr<const Layout>> Layout::make(const Roster& roster) {
    return make(static_cast<int>(roster.endpoints.size()), roster.job);
}

Result<std::shared_ptr<const Layout>> Layout::make(int ranks, std::string described) {
    std::shared_ptr<Layout> layout(new Layout);
    layout->order_.resize(static_cast<std::size_t>(ranks));
    std::iota(layout->order_.begin(), layout->order_.end(), 0);
    if (described.empty()) return std::shared_ptr<const Layout>(std::move(layout));
    PCCL_ASSIGN_OR_RETURN(topo::JobTopology job, topo::decode_job(described));
    if (job.ranks() != ranks)
        return Status::invalid_argument(
            concat("a job of ", job.ranks(), " ranks for a group of ", ranks));
    PCCL_ASSIGN_OR_RETURN(layout->order_, job.order());
    layout->ring_count_ = job.hosts().size() > 1 ? job.ring_count() : 1;
    layout->links_.emplace(std::move(job));
    layout->job_ = std::move(described);
    return std::shared_ptr<const Layout>(std::move(layout));
}

bool Layout::is_on_one_host() const { return !links_ || links_->job().hosts().size() == 1; }

std::vector<std::string> Layout::describe_links() const {
    if (is_on_one_host()) {
        const bool measured = links_ && !links_->job().hosts().front().calibration.is_empty();
        return {
            concat("memory of one host: ",
                   measured ? "measured" : "built-in figures (pccl topo --measure measures it)")};
    }
    std::vector<std::string> lines;
    const topo::JobTopology& job = links_->job();
    for (std::size_t host = 0; host < job.hosts().size(); ++host) {
        const topo::Network& network = job.hosts()[host].network;
        const int index = static_cast<int>(host);
        const double rate = job.network_bandwidth(index);
        lines.push_back(concat(network.interface.empty() ? "the network" : network.interface,
                               " of ", job.hosts()[host].name, ": ", std::round(rate * 1e3) / 1e3,
                               " GB/s, ", topo::to_string(job.network_provenance(index))));
    }
    return lines;
}

LinksCountedOn links_counted_on(const Layout& layout) {
    return {.links = layout.describe_links(),
            .order = layout.order(),
            .ring_count = layout.ring_count()};
}

std::string Layout::digest() const {
    Digest digest;
    for (const Rank rank : order_) digest.add(concat(rank, ","));
    digest.add(concat(ring_count_, ";"));
    if (links_) digest.add(links_->job().digest());
    return digest.text();
}

}  // namespace pccl::bootstrap
