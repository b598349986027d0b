// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/search/solver.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/topo/machine/rates.h"
#include "csrc/topo/search/infinite.h"
#include "csrc/topo/search/orders.h"

namespace pccl::topo {
namespace {

constexpr double kNothing = 1e-7;
constexpr int kMostForPricing = 12;

bool reaches(double bandwidth, double bound) { return bandwidth >= bound * (1 - 1e-6); }

/// Search for routes whose value exceeds their cost at the prices of a packing.
class Pricing {
   public:
    Pricing(const Problem& problem, const std::map<int, double>& prices)
        : problem_(problem),
          prices_(by_link(problem, prices)),
          costs_(hop_costs(problem, prices_)) {}

    [[nodiscard]] static std::int64_t steps(const Problem& problem) {
        const bool is_from_one = problem.is_ring() && !problem.is_multi_node();
        return HeldKarp::steps(problem.gpus()) * (is_from_one ? 1 : 2 * problem.gpus());
    }

    /// Returns the best route of each kind with a cost below 1; sets `least` to the lowest cost of
    /// all.
    std::vector<Route> find(double& least) {
        least_ = kInfinite;
        if (!problem_.is_multi_node())
            find_within_node();
        else if (problem_.is_ring())
            find_rings_between_nodes();
        else
            find_trees_between_nodes();
        least = least_;
        return std::move(found_);
    }

   private:
    static std::vector<double> by_link(const Problem& problem,
                                       const std::map<int, double>& prices) {
        std::vector<double> result(problem.capacity().size());
        for (const auto& [link, price] : prices) result[at(link)] = price;
        return result;
    }

    [[nodiscard]] double cost(const Usage& usage) const {
        double sum = 0;
        for (const auto& [link, weight] : usage) sum += weight * prices_[at(link)];
        return sum;
    }

    /// Stores a route of this cost if it improves the packing.
    template <typename MakeRoute>
    void offer(double cost, const MakeRoute& make) {
        constexpr double kWorthIt = 1 - 1e-7;
        least_ = std::min(least_, cost);
        if (cost < kWorthIt) found_.push_back(make());
    }

    void find_within_node() {
        const int starts = problem_.is_ring() ? 1 : problem_.gpus();
        for (int start = 0; start < starts; ++start) {
            const HeldKarp best(costs_, start);
            int end = -1;
            double least = kInfinite;
            for (int last = 0; last < problem_.gpus(); ++last) {
                const double closing = problem_.is_ring() ? costs_.at(last, start) : 0;
                if (best.cost(last) + closing >= least) continue;
                least = best.cost(last) + closing;
                end = last;
            }
            if (end >= 0) offer(least, [&] { return Route{best.path(end)}; });
        }
    }

    void find_trees_between_nodes() {
        for (int head = 0; head < problem_.gpus(); ++head) {
            const HeldKarp best(costs_, head);
            int end = 0;
            for (int last = 0; last < problem_.gpus(); ++last)
                if (best.cost(last) < best.cost(end)) end = last;
            if (best.cost(end) == kInfinite) continue;
            for (const int net : problem_.nets()) {
                if (!may_reach(net, head)) continue;
                const double ends =
                    cost(problem_.enter(net, head)) + cost(problem_.leave(head, net));
                offer(best.cost(end) + problem_.net_share() * ends,
                      [&] { return Route{best.path(end), net, net}; });
            }
        }
    }

    /// Finds rings with one NIC, and pairs of rings; the cost of a pair covers both directions.
    void find_rings_between_nodes() {
        CostMatrix both(problem_.gpus());
        for (int from = 0; from < problem_.gpus(); ++from)
            for (int to = 0; to < problem_.gpus(); ++to)
                both.at(from, to) = (costs_.at(from, to) + costs_.at(to, from)) / 2;
        const Ends ends = costs_of_ends();
        for (int first = 0; first < problem_.gpus(); ++first) {
            const HeldKarp forward(costs_, first);
            const HeldKarp pair(both, first);
            for (std::size_t in = 0; in < problem_.nets().size(); ++in) {
                offer_ring(forward, ends, {first, in, in});
                for (std::size_t out = in + 1; out < problem_.nets().size(); ++out)
                    offer_ring(pair, ends, {first, in, out});
            }
        }
    }

    struct Ends {
        std::vector<std::vector<double>> enter;  // by port, by GPU
        std::vector<std::vector<double>> leave;
    };
    struct RingEnds {
        int first;
        std::size_t in;
        std::size_t out;
    };

    [[nodiscard]] bool may_reach(int net, int gpu) const {
        const std::vector<int> gpus = problem_.reach(net);
        return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
    }

    [[nodiscard]] Ends costs_of_ends() const {
        const std::vector<double> none(at(problem_.gpus()), kInfinite);
        Ends ends;
        for (const int net : problem_.nets()) {
            ends.enter.push_back(none);
            ends.leave.push_back(none);
            for (const int gpu : problem_.reach(net)) {
                ends.enter.back()[at(gpu)] = cost(problem_.enter(net, gpu));
                ends.leave.back()[at(gpu)] = cost(problem_.leave(gpu, net));
            }
        }
        return ends;
    }

    void offer_ring(const HeldKarp& best, const Ends& ends, const RingEnds& ring) {
        const auto end_cost = [&](std::size_t net, int gpu, bool is_entered) {
            const double in = ends.enter[net][at(gpu)];
            const double out = ends.leave[net][at(gpu)];
            if (ring.in == ring.out) return is_entered ? in : out;
            return (in + out) / 2;
        };
        const double entering = end_cost(ring.in, ring.first, true);
        int end = -1;
        double least = kInfinite;
        for (int last = 0; last < problem_.gpus(); ++last) {
            const double sum = entering + best.cost(last) + end_cost(ring.out, last, false);
            if (sum >= least) continue;
            least = sum;
            end = last;
        }
        if (end < 0) return;
        offer(least, [&] {
            return Route{best.path(end), problem_.nets()[ring.in], problem_.nets()[ring.out]};
        });
    }

    const Problem& problem_;
    std::vector<double> prices_;
    CostMatrix costs_;
    std::vector<Route> found_;
    double least_ = kInfinite;
};

class Solver {
   public:
    Solver(const Problem& problem, std::int64_t& steps)
        : problem_(problem), steps_(steps), bound_(problem.bound(problem.options().max_channels)) {}

    std::optional<ChannelPlan> run() {
        for (Route& route : first_routes(problem_, steps_)) add(std::move(route));
        if (routes_.empty()) return std::nullopt;
        if (usages_.front().empty()) return alone();
        packing_ = pack_evenly(usages_, problem_.capacity());
        if (!reaches(packing_.total, bound_)) improve();
        drop_unused();
        return plan();
    }

   private:
    void add(Route route) {
        usages_.push_back(problem_.usage(route));
        routes_.push_back(std::move(route));
    }

    void improve() {
        packing_ = pack(usages_, problem_.capacity());
        const bool has_few_gpus = problem_.gpus() <= kMostForPricing;
        const bool has_orders = problem_.options().pattern != Pattern::kHeads;
        while (has_few_gpus && has_orders && !reaches(packing_.total, bound_)) {
            steps_ -= Pricing::steps(problem_);
            if (steps_ < 0 || !add_better_routes()) return;
        }
    }

    /// Returns false if no route improves the packing: it then has the most bandwidth.
    bool add_better_routes() {
        double least = kInfinite;
        std::vector<Route> better = Pricing(problem_, packing_.prices).find(least);
        // Prices divided by the cost of the cheapest route are a feasible dual.
        if (least > 0) bound_ = std::min(bound_, packing_.total / std::min(least, 1.0));
        for (Route& route : better)
            if (std::find(routes_.begin(), routes_.end(), route) == routes_.end())
                add(std::move(route));
        if (packing_.amounts.size() == routes_.size()) return false;
        packing_ = pack(usages_, problem_.capacity());
        return true;
    }

    /// Returns the plan of one GPU, which crosses no link.
    [[nodiscard]] ChannelPlan alone() const {
        ChannelPlan plan = header();
        plan.channels.push_back({kLocalRate, routes_.front().order});
        plan.bandwidth = kLocalRate;
        plan.optimal = true;
        return plan;
    }

    [[nodiscard]] ChannelPlan header() const {
        return {.pattern = problem_.options().pattern,
                .nodes = problem_.options().nodes,
                .channels = {},
                .bound = bound_};
    }

    [[nodiscard]] static std::size_t channels_of(const Route& route) {
        return route.is_one_of_a_pair() ? 2 : 1;
    }

    /// Keeps the routes with the most bandwidth, up to the limit of channels.
    void drop_unused() {
        std::vector<std::size_t> kept;
        for (std::size_t i = 0; i < routes_.size(); ++i)
            if (packing_.amounts[i] > kNothing) kept.push_back(i);
        std::stable_sort(kept.begin(), kept.end(), [this](std::size_t a, std::size_t b) {
            return packing_.amounts[a] > packing_.amounts[b];
        });
        std::size_t channels = 0;
        std::size_t count = 0;
        while (count < kept.size() &&
               channels + channels_of(routes_[kept[count]]) <= at(problem_.options().max_channels))
            channels += channels_of(routes_[kept[count++]]);
        const bool are_all = count == kept.size();
        kept.resize(count);
        std::sort(kept.begin(), kept.end());
        keep(kept);
        if (!are_all && !routes_.empty()) packing_ = pack(usages_, problem_.capacity());
    }

    void keep(const std::vector<std::size_t>& kept) {
        std::vector<Route> routes;
        std::vector<Usage> usages;
        std::vector<double> amounts;
        for (const std::size_t i : kept) {
            routes.push_back(std::move(routes_[i]));
            usages.push_back(std::move(usages_[i]));
            amounts.push_back(packing_.amounts[i]);
        }
        routes_ = std::move(routes);
        usages_ = std::move(usages);
        packing_.amounts = std::move(amounts);
    }

    [[nodiscard]] std::optional<ChannelPlan> plan() const {
        ChannelPlan plan = header();
        for (std::size_t i = 0; i < routes_.size(); ++i) {
            const Route& route = routes_[i];
            const double share = packing_.amounts[i] / static_cast<double>(channels_of(route));
            if (share <= kNothing) continue;
            plan.channels.push_back({share, route.order, route.net_in, route.net_out});
            if (!route.is_one_of_a_pair()) continue;
            Route back = route.reversed();
            plan.channels.push_back({share, std::move(back.order), back.net_in, back.net_out});
        }
        if (plan.channels.empty()) return std::nullopt;
        for (const Channel& channel : plan.channels) plan.bandwidth += channel.bandwidth;
        plan.optimal = reaches(plan.bandwidth, bound_);
        return plan;
    }

    const Problem& problem_;
    std::int64_t& steps_;
    double bound_;
    std::vector<Route> routes_;
    std::vector<Usage> usages_;
    Packing packing_;
};

}  // namespace

std::optional<ChannelPlan> solve(const Problem& problem, std::int64_t& steps) {
    return Solver(problem, steps).run();
}

}  // namespace pccl::topo
