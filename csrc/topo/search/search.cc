// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/search/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/topo/machine/rates.h"
#include "csrc/topo/search/problem.h"
#include "csrc/topo/search/solver.h"

namespace pccl::topo {
namespace {

Status check_range(const char* name, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value >= low && value <= high) return Status::ok();
    return Status::invalid_argument(
        concat("search: ", name, " is ", value, ", must be from ", low, " to ", high));
}

Status check(const SearchOptions& options) {
    PCCL_TRY(check_range("nodes", options.nodes, 1, SearchOptions::kMostNodes));
    PCCL_TRY(check_range("max_channels", options.max_channels, 1, SearchOptions::kMostChannels));
    return check_range("steps", options.steps, 0, std::numeric_limits<std::int64_t>::max());
}

class Search {
   public:
    Search(const Topology& topology, const SearchOptions& options)
        : topology_(topology), graph_(topology.graph()), options_(options), steps_(options.steps) {}

    Result<ChannelPlan> run() {
        PCCL_TRY(check(options_));
        PCCL_TRY(check_machine());
        const TimePoint start = system_clock().now();
        std::optional<ChannelPlan> plan;
        for (const PathType intra : intra_types()) {
            plan = best_between_nodes(intra);
            if (plan) break;
        }
        if (!plan) return Status::unsupported(concat("search: ", why_not()));
        set_types(*plan);
        split(*plan);
        const Duration taken = system_clock().now() - start;
        plan->seconds = std::chrono::duration<double>(taken).count();
        return *std::move(plan);
    }

   private:
    using Types = std::set<PathType>;

    Status check_machine() const {
        if (graph_.gpus().empty()) return Status::unsupported("search: the machine has no GPU");
        if (options_.nodes > 1 && graph_.nets().empty())
            return Status::unsupported("search: several nodes, but the machine has no NIC");
        return options_.pattern == Pattern::kHeads ? check_heads() : Status::ok();
    }

    Status check_heads() const {
        constexpr int kHopper = 90;
        if (graph_.gpus().size() < 2)
            return Status::unsupported("search: heads need at least 2 GPUs");
        for (const int gpu : graph_.gpus()) {
            const Node& node = graph_.node(gpu);
            if (node.sm < kHopper)
                return Status::unsupported(concat("search: heads need sm ", kHopper, " or newer; ",
                                                  node.name, " is sm ", node.sm));
            const auto links = graph_.links_from(gpu);
            if (std::none_of(links.begin(), links.end(),
                             [this](int link) { return leads_to_switch(link); }))
                return Status::unsupported(concat("search: heads need every GPU on an NVSwitch; ",
                                                  node.name, " (", node.label, ") is not"));
        }
        return Status::ok();
    }

    [[nodiscard]] bool leads_to_switch(int link) const {
        return graph_.node(graph_.link(link).to).type == NodeType::kNvSwitch;
    }

    [[nodiscard]] Types types_between(const std::vector<int>& from,
                                      const std::vector<int>& to) const {
        Types types;
        for (const int a : from)
            for (const int b : to)
                if (a != b) types.insert(topology_.paths().path(a, b).type);
        types.erase(PathType::kDis);
        return types;
    }

    [[nodiscard]] Types intra_types() const {
        if (options_.pattern == Pattern::kHeads) return {PathType::kNvl};
        Types types = types_between(graph_.gpus(), graph_.gpus());
        if (graph_.gpus().size() == 1) types.insert(PathType::kLoc);
        return types;
    }

    std::optional<ChannelPlan> best_between_nodes(PathType intra) {
        if (options_.nodes == 1) return attempt({intra, PathType::kLoc});
        constexpr double kWorthAWorseType = 2;
        std::optional<ChannelPlan> best;
        for (const PathType inter : types_between(graph_.gpus(), graph_.nets())) {
            const Problem problem(topology_, options_, {intra, inter});
            const double wanted = best ? kWorthAWorseType * best->bandwidth : 0;
            if (best && problem.bound(options_.max_channels) < wanted) continue;
            auto plan = solve(problem, steps_);
            if (plan && plan->bandwidth >= wanted) best = std::move(plan);
        }
        return best;
    }

    std::optional<ChannelPlan> attempt(const TypeLimits& limits) {
        return solve(Problem(topology_, options_, limits), steps_);
    }

    [[nodiscard]] std::string why_not() const {
        if (graph_.hosts() > 1)
            return "no channel reaches all GPUs: the hosts of this machine are not joined by "
                   "NVLink; load one of them, or assume mnnvl=1";
        return "no channel reaches all GPUs";
    }

    [[nodiscard]] PathType type_between(int a, int b) const {
        return topology_.paths().path(a, b).type;
    }

    void set_types(ChannelPlan& plan) const {
        const bool is_closed = plan.pattern == Pattern::kRing && plan.nodes == 1;
        for (const Channel& channel : plan.channels) {
            const std::vector<int>& order = channel.order;
            for (std::size_t i = is_closed ? 0 : 1; i < order.size(); ++i) {
                const int from = graph_.gpus()[at(order[(i + order.size() - 1) % order.size()])];
                plan.type_intra =
                    std::max(plan.type_intra, type_between(from, graph_.gpus()[at(order[i])]));
            }
            if (plan.nodes == 1) continue;
            const int last = plan.pattern == Pattern::kRing ? order.back() : order.front();
            const std::vector<int>& nets = graph_.nets();
            plan.type_inter =
                std::max({plan.type_inter,
                          type_between(graph_.gpus()[at(order.front())], nets[at(channel.net_in)]),
                          type_between(graph_.gpus()[at(last)], nets[at(channel.net_out)])});
        }
    }

    /// Splits wide NVLink channels to the width that one thread block can serve.
    void split(ChannelPlan& plan) const {
        if (plan.type_intra > PathType::kNvb || graph_.gpus().size() < 2) return;
        int sm = 0;
        for (const int gpu : graph_.gpus()) sm = std::max(sm, graph_.node(gpu).sm);
        double widest = 0;
        for (const Channel& channel : plan.channels) widest = std::max(widest, channel.bandwidth);
        const auto wanted = static_cast<std::size_t>(std::ceil(widest / channel_rate(sm) - 1e-9));
        const std::size_t parts = std::clamp<std::size_t>(
            wanted, 1, std::max<std::size_t>(at(options_.max_channels) / plan.channels.size(), 1));
        std::vector<Channel> channels;
        for (std::size_t part = 0; part < parts; ++part) {
            for (Channel channel : plan.channels) {
                channel.bandwidth /= static_cast<double>(parts);
                channels.push_back(std::move(channel));
            }
        }
        plan.channels = std::move(channels);
        plan.bandwidth = 0;
        for (const Channel& channel : plan.channels) plan.bandwidth += channel.bandwidth;
    }

    const Topology& topology_;
    const Graph& graph_;
    SearchOptions options_;
    std::int64_t steps_;
};

}  // namespace

Result<ChannelPlan> search(const Topology& topology, const SearchOptions& options) {
    return Search(topology, options).run();
}

}  // namespace pccl::topo
