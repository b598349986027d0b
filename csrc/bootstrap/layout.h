// How the ranks of a group lie on its hosts, as schedules and the cost model count on it. A pure
// function of the roster: all ranks have the same.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/bootstrap/links_counted_on.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/topo/job/job_links.h"

namespace pccl::bootstrap {

class Layout {
   public:
    /// kInvalidArgument where Roster::job cannot be used, or PCCL_GRAPH_FILE does not fit.
    [[nodiscard]] static Result<std::shared_ptr<const Layout>> make(const Roster& roster);
    /// Of so many ranks, with what Roster::job holds.
    [[nodiscard]] static Result<std::shared_ptr<const Layout>> make(int ranks,
                                                                    std::string described);

    /// Ranks by position: neighbours next to each other.
    [[nodiscard]] const std::vector<Rank>& order() const { return order_; }
    /// Rings that run side by side.
    [[nodiscard]] int lanes() const { return lanes_; }
    /// Null where nothing is known but that all ranks share a host.
    [[nodiscard]] const topo::JobLinks* links() const { return links_ ? &*links_ : nullptr; }
    [[nodiscard]] bool is_on_one_host() const;
    /// What predictions count on: "eth0 of node7: 1.25 GB/s, measured", one for each host's
    /// network, or the host's memory.
    [[nodiscard]] std::vector<std::string> describe_links() const;
    [[nodiscard]] std::string digest() const;
    /// What it was made from: Roster::job.
    [[nodiscard]] const std::string& job() const { return job_; }

   private:
    Layout() = default;

    std::vector<Rank> order_;
    int lanes_ = 1;
    std::optional<topo::JobLinks> links_;
    std::string job_;
};

[[nodiscard]] LinksCountedOn links_counted_on(const Layout& layout);

}  // namespace pccl::bootstrap
