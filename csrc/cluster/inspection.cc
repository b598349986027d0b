#include "csrc/cluster/inspection.h"

#include <numeric>
#include <utility>

#include "csrc/cluster/scatter.h"

namespace pccl::cluster {
namespace {

using Indices = std::vector<std::size_t>;

void scatter_to(Step step, std::vector<Part>& parts, const Indices& who, Duration timeout) {
    std::vector<Part> chosen;
    chosen.reserve(who.size());
    for (const std::size_t i : who) chosen.push_back(parts[i]);
    scatter(step, chosen, timeout);
    for (std::size_t k = 0; k < who.size(); ++k) parts[who[k]] = chosen[k];
}

Indices succeeded(const std::vector<Part>& parts, Indices who) {
    std::erase_if(who, [&](std::size_t i) { return !parts[i].status.is_ok(); });
    return who;
}

void read_all(std::vector<Part>& parts, Duration timeout) {
    Indices left(parts.size());
    std::iota(left.begin(), left.end(), std::size_t{0});
    for (int attempt = 0; attempt < 2 && !left.empty(); ++attempt) {
        scatter_to(Step::kConnect, parts, left, timeout);
        left = succeeded(parts, std::move(left));
        scatter_to(Step::kRead, parts, left, timeout);
        scatter_to(Step::kLight, parts, succeeded(parts, left), timeout);
        std::erase_if(
            left, [&](std::size_t i) { return parts[i].status.code() != StatusCode::kPeerLost; });
    }
}

}  // namespace

std::vector<Sight> look_at(const std::vector<NamedDriver>& switches, Duration timeout) {
    std::vector<Part> parts;
    parts.reserve(switches.size());
    for (const NamedDriver& each : switches)
        parts.push_back({.driver = each.driver, .intent = {}, .status = {}});
    read_all(parts, timeout);
    std::vector<Sight> sights;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Part& part = parts[i];
        Sight sight{switches[i].name, part.status, {}, {}};
        if (part.status.is_ok()) {
            sight.circuits = part.driver->circuits();
            sight.dark = part.driver->dark();
        }
        sights.push_back(std::move(sight));
        static_cast<void>(part.driver->take_exchanges());  // nothing was changed
    }
    return sights;
}

}  // namespace pccl::cluster
