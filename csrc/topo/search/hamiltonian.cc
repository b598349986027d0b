// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/search/hamiltonian.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "csrc/topo/search/infinite.h"

namespace pccl::topo {
namespace {

std::size_t at_index(int i) { return static_cast<std::size_t>(i); }
std::size_t bit_of(int i) { return std::size_t{1} << static_cast<unsigned>(i); }

using Units = std::vector<std::vector<int>>;
using Cycle = std::vector<int>;

/// List of undirected Hamiltonian cycles from GPU 0, up to a limit.
class CycleList {
   public:
    CycleList(const Units& units, std::int64_t& steps) : units_(units), steps_(steps) {
        path_.push_back(0);
        seen_.assign(units.size(), false);
        seen_[0] = true;
        extend();
    }
    [[nodiscard]] const std::vector<Cycle>& cycles() const { return cycles_; }

   private:
    static constexpr std::size_t kMostCycles = 20'000;

    void extend() {  // NOLINT(misc-no-recursion): as deep as there are GPUs
        if (--steps_ < 0 || cycles_.size() >= kMostCycles) return;
        const std::vector<int>& row = units_[at_index(path_.back())];
        if (path_.size() == units_.size()) {
            // Keeps only one of a cycle and its reverse.
            if (row[0] > 0 && path_[1] <= path_.back()) cycles_.push_back(path_);
            return;
        }
        for (int next = 1; std::cmp_less(next, units_.size()); ++next) {
            if (seen_[at_index(next)] || row[at_index(next)] == 0) continue;
            seen_[at_index(next)] = true;
            path_.push_back(next);
            extend();
            path_.pop_back();
            seen_[at_index(next)] = false;
        }
    }

    const Units& units_;
    std::int64_t& steps_;
    Cycle path_;
    std::vector<bool> seen_;
    std::vector<Cycle> cycles_;
};

/// Selection of as many cycles as fit, each possibly more than once.
class CyclePicker {
   public:
    CyclePicker(Units units, const std::vector<Cycle>& cycles, std::int64_t& steps)
        : units_(std::move(units)), cycles_(cycles), steps_(steps) {
        int most = std::numeric_limits<int>::max();
        for (const std::vector<int>& row : units_) {
            int degree = 0;
            for (const int count : row) degree += count;
            most = std::min(most, degree / 2);
        }
        bound_ = at_index(most);
        pick(0);
    }
    [[nodiscard]] std::vector<Cycle> best() const {
        std::vector<Cycle> found;
        found.reserve(best_.size());
        for (const std::size_t cycle : best_) found.push_back(cycles_[cycle]);
        return found;
    }

   private:
    void pick(std::size_t first) {  // NOLINT(misc-no-recursion): as deep as there are cycles picked
        if (picked_.size() > best_.size()) best_ = picked_;
        for (std::size_t cycle = first; cycle < cycles_.size(); ++cycle) {
            if (best_.size() >= bound_ || --steps_ < 0) return;
            if (!fits(cycles_[cycle])) continue;
            take(cycles_[cycle], -1);
            picked_.push_back(cycle);
            pick(cycle);
            picked_.pop_back();
            take(cycles_[cycle], 1);
        }
    }

    [[nodiscard]] bool fits(const Cycle& cycle) const {
        if (cycle.size() == 2) return units_[0][1] >= 2;
        for (std::size_t i = 0; i < cycle.size(); ++i)
            if (units_[at_index(cycle[i])][at_index(cycle[(i + 1) % cycle.size()])] <= 0)
                return false;
        return true;
    }

    void take(const Cycle& cycle, int change) {
        for (std::size_t i = 0; i < cycle.size(); ++i) {
            const std::size_t from = at_index(cycle[i]);
            const std::size_t to = at_index(cycle[(i + 1) % cycle.size()]);
            units_[from][to] += change;
            units_[to][from] += change;
        }
    }

    Units units_;
    const std::vector<Cycle>& cycles_;
    std::int64_t& steps_;
    std::size_t bound_ = 0;
    std::vector<std::size_t> picked_;
    std::vector<std::size_t> best_;
};

}  // namespace

std::int64_t HeldKarp::steps(int n) {
    return static_cast<std::int64_t>(n) * n * static_cast<std::int64_t>(bit_of(n - 1)) / 2 + n;
}

HeldKarp::HeldKarp(const CostMatrix& costs, int start)
    : costs_(costs), n_(costs.size()), start_(start) {
    const std::size_t sets = bit_of(n_ - 1);
    best_.assign(sets * at_index(n_), kInfinite);
    for (int last = 0; last < n_ - 1; ++last) at(bit_of(last), last) = costs.at(start, gpu(last));
    for (std::size_t set = 1; set < sets; ++set) {
        for (std::size_t ends = set; ends != 0; ends &= ends - 1) {
            const int last = std::countr_zero(ends);
            const double so_far = at(set, last);
            if (so_far == kInfinite) continue;
            for (std::size_t left = (sets - 1) & ~set; left != 0; left &= left - 1) {
                const int next = std::countr_zero(left);
                double& there = at(set | bit_of(next), next);
                there = std::min(there, so_far + costs.at(gpu(last), gpu(next)));
            }
        }
    }
}

double HeldKarp::cost(int last) const {
    if (n_ == 1) return 0;
    return last == start_ ? kInfinite : at(bit_of(n_ - 1) - 1, other(last));
}

std::vector<int> HeldKarp::path(int last) const {
    std::vector<int> backwards;
    if (n_ > 1) {
        std::size_t set = bit_of(n_ - 1) - 1;
        int here = other(last);
        while (true) {
            backwards.push_back(gpu(here));
            const std::size_t rest = set & ~bit_of(here);
            if (rest == 0) break;
            int before = -1;
            for (std::size_t ends = rest; ends != 0; ends &= ends - 1) {
                const int candidate = std::countr_zero(ends);
                if (at(rest, candidate) + costs_.at(gpu(candidate), gpu(here)) == at(set, here)) {
                    before = candidate;
                    break;
                }
            }
            set = rest;
            here = before;
        }
    }
    backwards.push_back(start_);
    std::reverse(backwards.begin(), backwards.end());
    return backwards;
}

std::vector<std::vector<int>> disjoint_cycles(const std::vector<std::vector<int>>& units,
                                              std::int64_t& steps) {
    if (units.size() < 2) return {};
    const CycleList list(units, steps);
    return CyclePicker(units, list.cycles(), steps).best();
}

}  // namespace pccl::topo
