// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/search/rails.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "csrc/base/ids.h"

namespace pccl::topo {
namespace {

class RailLayer {
   public:
    explicit RailLayer(const Problem& problem)
        : problem_(problem), firsts_(at(problem.gpus())), lasts_(at(problem.gpus())) {}

    std::vector<Rail> lay() {
        for (const int net : chosen_ports()) {
            const std::vector<int> gpus = problem_.closest(net);
            if (!problem_.is_ring() || problem_.gpus() == 1)
                rails_.push_back(at_one_gpu(net, gpus));
            else if (gpus.size() > 1)
                rails_.push_back(at_two_gpus(net, gpus, gpus));
            else
                singles_.push_back({net, gpus.front()});
        }
        pair_singles();
        return std::move(rails_);
    }

   private:
    struct Single {
        int net;
        int gpu;
    };

    [[nodiscard]] std::vector<int> chosen_ports() const {
        const std::vector<int>& nets = problem_.nets();
        const std::size_t wanted = std::min(nets.size(), ports_worth_having());
        std::vector<int> chosen;
        chosen.reserve(wanted);
        for (std::size_t i = 0; i < wanted; ++i) chosen.push_back(nets[i * nets.size() / wanted]);
        return chosen;
    }

    /// Returns the number of ports that saturates the links between the GPUs.
    [[nodiscard]] std::size_t ports_worth_having() const {
        const std::size_t most = at(problem_.options().max_channels);
        const std::size_t all = problem_.nets().size();
        const bool is_better_with_more = problem_.options().pattern == Pattern::kHeads;
        if (all <= most || is_better_with_more) return std::min(all, most);
        const double each = problem_.net_capacity() / static_cast<double>(all);
        const double needed = std::ceil(problem_.bound(1) * problem_.net_share() / each - 1e-9);
        return std::min(most, static_cast<std::size_t>(std::max(needed, 1.0)));
    }

    static int least_used(const std::vector<int>& gpus, const std::vector<int>& uses, int but) {
        int best = -1;
        for (const int gpu : gpus)
            if (gpu != but && (best < 0 || uses[at(gpu)] < uses[at(best)])) best = gpu;
        return best;
    }

    Rail at_one_gpu(int net, const std::vector<int>& gpus) {
        const int gpu = least_used(gpus, firsts_, -1);
        ++firsts_[at(gpu)];
        return {net, gpu, gpu, net};
    }

    Rail at_two_gpus(int net, const std::vector<int>& for_first, const std::vector<int>& for_last) {
        const int first = least_used(for_first, firsts_, -1);
        const int last = least_used(for_last, lasts_, first);
        ++firsts_[at(first)];
        ++lasts_[at(last)];
        return {net, first, last, net};
    }

    void pair_singles() {
        while (!singles_.empty()) {
            const Single one = singles_.front();
            singles_.erase(singles_.begin());
            const auto other =
                std::find_if(singles_.begin(), singles_.end(),
                             [&](const Single& single) { return single.gpu != one.gpu; });
            if (other != singles_.end()) {
                paired_.push_back(one);
                paired_.push_back(*other);
                rails_.push_back({one.net, one.gpu, other->gpu, other->net});
                singles_.erase(other);
            } else {
                place_alone(one);
            }
        }
    }

    /// Forms a triangle with two paired ports, or else uses a GPU farther away.
    void place_alone(const Single& one) {
        int shared = 0;
        for (const Single& other : paired_) {
            if (other.gpu == one.gpu || shared == 2) continue;
            rails_.push_back({one.net, one.gpu, other.gpu, other.net});
            ++shared;
        }
        const std::vector<int> gpus = problem_.reach(one.net);
        if (shared == 0 && gpus.size() > 1) rails_.push_back(at_two_gpus(one.net, {one.gpu}, gpus));
    }

    const Problem& problem_;
    std::vector<int> firsts_;  // by GPU: number of channels that begin there
    std::vector<int> lasts_;
    std::vector<Rail> rails_;
    std::vector<Single> singles_;
    std::vector<Single> paired_;
};

}  // namespace

std::vector<Rail> lay_rails(const Problem& problem) { return RailLayer(problem).lay(); }

}  // namespace pccl::topo
