// SPDX-License-Identifier: Apache-2.0

// Layout of a group's ranks on its hosts, for schedules and the cost model. It is a pure function
// of the roster, and thus the same on all ranks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/topo/job/job_links.h"

namespace pccl::bootstrap {

/// Assumptions of predictions.
struct LinksCountedOn {
    std::vector<std::string> links;  // "eth0 of node7: 1.25 GB/s, measured"
    std::vector<Rank> order;         // in rings and trees
    int ring_count = 1;              // parallel rings
    std::string costs_from{};  // "measured 2026-11-25T21:40:03Z, load 0.1", or "defaults, ..."
    std::vector<std::string> costs{};    // "beat: 0.21 us, measured (...)"
    std::vector<std::string> helpers{};  // "transfers over links: up to 7 helper threads, ..."
};

class Layout {
   public:
    /// Returns kInvalidArgument where Roster::job is unusable, or PCCL_GRAPH_FILE does not match.
    [[nodiscard]] static Result<std::shared_ptr<const Layout>> make(const Roster& roster);
    /// Makes the layout of `ranks` ranks from the content of Roster::job.
    [[nodiscard]] static Result<std::shared_ptr<const Layout>> make(int ranks,
                                                                    std::string described);

    /// Returns the ranks by position; neighbours are adjacent.
    [[nodiscard]] const std::vector<Rank>& order() const { return order_; }
    /// Returns the number of parallel rings.
    [[nodiscard]] int ring_count() const { return ring_count_; }
    /// Returns null where nothing is known except that all ranks share a host.
    [[nodiscard]] const topo::JobLinks* links() const { return links_ ? &*links_ : nullptr; }
    [[nodiscard]] bool is_on_one_host() const;
    /// Returns the links that predictions assume: "eth0 of node7: 1.25 GB/s, measured", one for
    /// each host's network, or the host's memory.
    [[nodiscard]] std::vector<std::string> describe_links() const;
    [[nodiscard]] std::string digest() const;
    /// Returns the Roster::job from which it was made.
    [[nodiscard]] const std::string& job() const { return job_; }

   private:
    Layout() = default;

    std::vector<Rank> order_;
    int ring_count_ = 1;
    std::optional<topo::JobLinks> links_;
    std::string job_;
};

[[nodiscard]] LinksCountedOn links_counted_on(const Layout& layout);

}  // namespace pccl::bootstrap
