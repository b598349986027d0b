// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/search/packing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "csrc/topo/search/infinite.h"

namespace pccl::topo {
namespace {

constexpr double kTiny = 1e-9;

/// basic = bounds - body * nonbasic; the objective is gain - loss, loss by nonbasic variable.
class SimplexDictionary {
   public:
    SimplexDictionary(std::span<const Usage> routes, std::span<const double> capacity)
        : columns_(routes.size()) {
        std::map<int, std::size_t> row_of;
        for (const Usage& route : routes)
            for (const auto& [link, weight] : route) row_of.emplace(link, 0);
        for (auto& [link, row] : row_of) {
            row = links_.size();
            links_.push_back(link);
            bounds_.push_back(capacity[static_cast<std::size_t>(link)]);
        }
        body_.assign(links_.size() * columns_, 0);
        for (std::size_t route = 0; route < columns_; ++route)
            for (const auto& [link, weight] : routes[route]) at(row_of[link], route) = weight;
        gains_.assign(columns_, 1);
        // Variables: routes first, then the slack of each link.
        nonbasic_.resize(columns_);
        std::iota(nonbasic_.begin(), nonbasic_.end(), std::size_t{0});
        basic_.resize(links_.size());
        std::iota(basic_.begin(), basic_.end(), columns_);
    }

    void solve() {
        const std::size_t greedy_pivots = 20 * (links_.size() + columns_) + 100;
        for (std::size_t pivots = 0; pivots < 2 * greedy_pivots; ++pivots) {
            const std::size_t column = entering(pivots >= greedy_pivots);
            if (column == columns_) return;
            const std::size_t row = leaving(column);
            if (row == links_.size()) return;
            pivot(row, column);
        }
    }

    [[nodiscard]] Packing packing() const {
        Packing packing;
        packing.amounts.assign(columns_, 0);
        for (std::size_t row = 0; row < links_.size(); ++row)
            if (basic_[row] < columns_) packing.amounts[basic_[row]] = std::max(bounds_[row], 0.0);
        for (std::size_t column = 0; column < columns_; ++column)
            if (nonbasic_[column] >= columns_ && gains_[column] < -kTiny)
                packing.prices[links_[nonbasic_[column] - columns_]] = -gains_[column];
        packing.total = std::accumulate(packing.amounts.begin(), packing.amounts.end(), 0.0);
        return packing;
    }

   private:
    double& at(std::size_t row, std::size_t column) { return body_[row * columns_ + column]; }

    [[nodiscard]] std::size_t entering(bool take_first) const {
        std::size_t best = columns_;
        for (std::size_t column = 0; column < columns_; ++column) {
            if (gains_[column] <= kTiny) continue;
            const bool is_better =
                best == columns_ ||
                (take_first ? nonbasic_[column] < nonbasic_[best] : gains_[column] > gains_[best]);
            if (is_better) best = column;
        }
        return best;
    }

    [[nodiscard]] std::size_t leaving(std::size_t column) {
        std::size_t best = links_.size();
        double least = kInfinite;
        for (std::size_t row = 0; row < links_.size(); ++row) {
            if (at(row, column) <= kTiny) continue;
            const double ratio = bounds_[row] / at(row, column);
            if (ratio > least || (ratio == least && basic_[row] > basic_[best])) continue;
            least = ratio;
            best = row;
        }
        return best;
    }

    void pivot(std::size_t row, std::size_t column) {
        const double inverse = 1 / at(row, column);
        at(row, column) = 1;
        for (std::size_t j = 0; j < columns_; ++j) at(row, j) *= inverse;
        bounds_[row] *= inverse;
        for (std::size_t i = 0; i < links_.size(); ++i) {
            const double factor = at(i, column);
            if (i == row || factor == 0) continue;
            at(i, column) = 0;
            for (std::size_t j = 0; j < columns_; ++j) at(i, j) -= factor * at(row, j);
            bounds_[i] = std::max(bounds_[i] - factor * bounds_[row], 0.0);
        }
        const double gain = gains_[column];
        gains_[column] = 0;
        for (std::size_t j = 0; j < columns_; ++j) gains_[j] -= gain * at(row, j);
        std::swap(basic_[row], nonbasic_[column]);
    }

    std::size_t columns_;
    std::vector<int> links_;
    std::vector<double> bounds_;
    std::vector<double> body_;
    std::vector<double> gains_;
    std::vector<std::size_t> basic_;
    std::vector<std::size_t> nonbasic_;
};

}  // namespace

Packing pack(std::span<const Usage> routes, std::span<const double> capacity) {
    SimplexDictionary dictionary(routes, capacity);
    dictionary.solve();
    return dictionary.packing();
}

Packing pack_evenly(std::span<const Usage> routes, std::span<const double> capacity) {
    Usage together;
    for (const Usage& route : routes)
        for (const auto& [link, weight] : route) together[link] += weight;
    double amount = kInfinite;
    for (const auto& [link, weight] : together)
        if (weight > 0)
            amount = std::min(amount, capacity[static_cast<std::size_t>(link)] / weight);
    Packing packing;
    packing.amounts.assign(routes.size(), amount);
    packing.total = amount * static_cast<double>(routes.size());
    return packing;
}

}  // namespace pccl::topo
