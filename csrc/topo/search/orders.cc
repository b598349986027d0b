// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/search/orders.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/topo/search/infinite.h"
#include "csrc/topo/search/rails.h"

namespace pccl::topo {
namespace {

constexpr int kMostForExact = 12;

std::vector<int> rotated(std::vector<int> order, int by) {
    std::rotate(order.begin(), order.begin() + by % std::ssize(order), order.end());
    return order;
}

std::vector<int> in_index_order(int n) {
    std::vector<int> order(at(n));
    std::iota(order.begin(), order.end(), 0);
    return order;
}

/// Returns the order from `first`, upwards by index and cyclically, to `last`.
std::vector<int> in_index_order(int n, int first, int last) {
    std::vector<int> order = rotated(in_index_order(n), first);
    if (last != first) {
        std::erase(order, last);
        order.push_back(last);
    }
    return order;
}

/// Rings are equivalent for any start; the ends of chains, and heads, are spread evenly over the
/// GPUs.
std::vector<Route> around_switch(const Problem& problem) {
    const int n = problem.gpus();
    std::vector<Route> routes;
    if (problem.is_multi_node()) {
        for (const Rail& rail : lay_rails(problem))
            routes.push_back({in_index_order(n, rail.first, rail.last), rail.net_in, rail.net_out});
        return routes;
    }
    if (problem.is_ring()) return {{in_index_order(n)}};
    const bool is_chain = problem.options().pattern == Pattern::kTree;
    const int stride = is_chain && n % 2 == 0 ? 2 : 1;
    const int count = std::min(n / stride, problem.options().max_channels);
    for (int i = 0; i < count; ++i) routes.push_back({rotated(in_index_order(n), i * stride)});
    return routes;
}

/// Returns cycles over links between GPUs; each link counts as a multiple of the narrowest one.
std::vector<Route> around_mesh(const Problem& problem, std::int64_t& steps) {
    const int n = problem.gpus();
    std::vector<std::vector<double>> widths(at(n), std::vector<double>(at(n)));
    double narrowest = kInfinite;
    for (int from = 0; from < n; ++from) {
        for (int to = 0; to < n; ++to) {
            if (from == to || !problem.may_hop(from, to)) continue;
            const Usage usage = problem.hop(from, to);
            const double width = problem.capacity()[at(usage.begin()->first)];
            widths[at(from)][at(to)] = width;
            narrowest = std::min(narrowest, width);
        }
    }
    std::vector<std::vector<int>> units(at(n), std::vector<int>(at(n)));
    for (std::size_t from = 0; from < widths.size(); ++from)
        for (std::size_t to = 0; to < widths.size(); ++to)
            units[from][to] = static_cast<int>(std::floor(widths[from][to] / narrowest + 1e-9));
    std::vector<Route> routes;
    for (const std::vector<int>& cycle : disjoint_cycles(units, steps)) {
        if (problem.is_ring()) {
            routes.push_back({cycle});
            routes.push_back(Route{cycle}.reversed());
        } else {
            for (int start = 0; start < n; ++start) routes.push_back({rotated(cycle, start)});
        }
    }
    return routes;
}

bool is_mesh(const Problem& problem) {
    return problem.limits().intra == PathType::kNvl && !problem.is_switched() &&
           problem.gpus() > 1 && problem.gpus() <= HeldKarp::kMost;
}

/// Generator of orders, each of which avoids the links of the earlier ones.
class CheapOrders {
   public:
    CheapOrders(const Problem& problem, std::int64_t& steps)
        : problem_(problem), steps_(steps), used_(problem.capacity().size()) {}

    std::vector<Route> find() {
        if (problem_.is_multi_node()) {
            for (const Rail& rail : lay_rails(problem_)) {
                const bool is_free = rail.last == rail.first && problem_.gpus() > 1;
                add(order(rail.first, is_free ? -1 : rail.last), rail.net_in, rail.net_out);
            }
        } else {
            add(order(0, -1), kNoNet, kNoNet);
        }
        return std::move(routes_);
    }

   private:
    void add(std::vector<int> order, int net_in, int net_out) {
        if (order.empty()) return;
        routes_.push_back({std::move(order), net_in, net_out});
        for (const auto& [link, weight] : problem_.usage(routes_.back())) used_[at(link)] += weight;
    }

    /// Returns an order to `last`, or to the cheapest end if that is -1; empty if there is none.
    std::vector<int> order(int first, int last) {
        constexpr double kCrowded = 16;
        std::vector<double> prices;
        for (std::size_t link = 0; link < used_.size(); ++link) {
            const double capacity = problem_.capacity()[link];
            prices.push_back((1 + kCrowded * used_[link]) / (capacity * capacity));
        }
        const CostMatrix costs = hop_costs(problem_, prices);
        return problem_.gpus() <= kMostForExact ? cheapest(costs, first, last)
                                                : nearest_first(costs, first, last);
    }

    std::vector<int> cheapest(const CostMatrix& costs, int first, int last) {
        const int n = costs.size();
        steps_ -= HeldKarp::steps(n);
        const HeldKarp best(costs, first);
        const bool is_closed = problem_.is_ring() && !problem_.is_multi_node() && n > 1;
        double least = kInfinite;
        int end = -1;
        for (int gpu = 0; gpu < n; ++gpu) {
            if (last >= 0 && gpu != last) continue;
            const double cost = best.cost(gpu) + (is_closed ? costs.at(gpu, first) : 0);
            if (cost >= least) continue;
            least = cost;
            end = gpu;
        }
        return end < 0 ? std::vector<int>{} : best.path(end);
    }

    /// Selects as next GPU the one with the fewest onward links (Warnsdorff's rule), then the
    /// nearest.
    std::vector<int> nearest_first(const CostMatrix& costs, int first, int last) {
        const int n = costs.size();
        std::vector<bool> seen(at(n));
        std::vector<int> order{first};
        seen[at(first)] = true;
        if (last >= 0) seen[at(last)] = true;
        const auto ways_on = [&](int from) {
            int ways = 0;
            for (int to = 0; to < n; ++to)
                if (to != from && !seen[at(to)] && costs.at(from, to) < kInfinite) ++ways;
            return ways;
        };
        while (std::cmp_less(order.size(), last >= 0 && last != first ? n - 1 : n)) {
            std::tuple<int, double, int> best{n + 1, kInfinite, -1};
            for (int next = 0; next < n; ++next) {
                const double cost = costs.at(order.back(), next);
                if (!seen[at(next)] && cost < kInfinite)
                    best = std::min(best, {ways_on(next), cost, next});
            }
            steps_ -= static_cast<std::int64_t>(n) * n;
            if (std::get<2>(best) < 0) return {};
            order.push_back(std::get<2>(best));
            seen[at(order.back())] = true;
        }
        if (last >= 0 && last != first) order.push_back(last);
        return is_way_through(costs, order) ? order : std::vector<int>{};
    }

    [[nodiscard]] bool is_way_through(const CostMatrix& costs,
                                      const std::vector<int>& order) const {
        for (std::size_t i = 1; i < order.size(); ++i)
            if (costs.at(order[i - 1], order[i]) == kInfinite) return false;
        const bool is_closed = problem_.is_ring() && !problem_.is_multi_node();
        return !is_closed || order.size() == 1 || costs.at(order.back(), order.front()) < kInfinite;
    }

    const Problem& problem_;
    std::int64_t& steps_;
    std::vector<double> used_;
    std::vector<Route> routes_;
};

}  // namespace

CostMatrix hop_costs(const Problem& problem, const std::vector<double>& prices) {
    CostMatrix costs(problem.gpus());
    for (int from = 0; from < problem.gpus(); ++from) {
        for (int to = 0; to < problem.gpus(); ++to) {
            costs.at(from, to) = kInfinite;
            if (from == to || !problem.may_hop(from, to)) continue;
            costs.at(from, to) = 0;
            for (const auto& [link, weight] : problem.hop(from, to))
                costs.at(from, to) += weight * prices[at(link)];
        }
    }
    return costs;
}

std::vector<Route> first_routes(const Problem& problem, std::int64_t& steps) {
    if (problem.is_switched()) return around_switch(problem);
    if (is_mesh(problem) && !problem.is_multi_node()) {
        std::vector<Route> routes = around_mesh(problem, steps);
        if (!routes.empty()) return routes;
    }
    return CheapOrders(problem, steps).find();
}

}  // namespace pccl::topo
