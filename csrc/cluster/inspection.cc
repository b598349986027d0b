// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/inspection.h"

#include <numeric>
#include <utility>

#include "csrc/cluster/scatter.h"

namespace pccl::cluster {
namespace {

using Indices = std::vector<std::size_t>;

/// Parameters of an inspection.
struct Look {
    Duration timeout{};  // per step
    const Interrupted& interrupted;
};

Status scatter_to(Step step, std::vector<SwitchTask>& parts, const Indices& who, const Look& look) {
    std::vector<SwitchTask> chosen;
    chosen.reserve(who.size());
    for (const std::size_t i : who) chosen.push_back(parts[i]);
    const Status interruption =
        scatter(step, chosen, look.timeout, {.interrupted = look.interrupted});
    for (std::size_t k = 0; k < who.size(); ++k) parts[who[k]] = chosen[k];
    return interruption;
}

Indices succeeded(const std::vector<SwitchTask>& parts, Indices who) {
    std::erase_if(who, [&](std::size_t i) { return !parts[i].status.is_ok(); });
    return who;
}

Status read_all(std::vector<SwitchTask>& parts, const Look& look) {
    Indices left(parts.size());
    std::iota(left.begin(), left.end(), std::size_t{0});
    for (int attempt = 0; attempt < 2 && !left.empty(); ++attempt) {
        PCCL_TRY(scatter_to(Step::kConnect, parts, left, look));
        left = succeeded(parts, std::move(left));
        PCCL_TRY(scatter_to(Step::kRead, parts, left, look));
        PCCL_TRY(scatter_to(Step::kLight, parts, succeeded(parts, left), look));
        std::erase_if(
            left, [&](std::size_t i) { return parts[i].status.code() != StatusCode::kPeerLost; });
    }
    return Status::ok();
}

/// Marks the tasks that succeeded before an interruption, because their switches were not read
/// completely.
void mark_interrupted(std::vector<SwitchTask>& parts, const Status& interruption) {
    for (SwitchTask& part : parts)
        if (part.status.is_ok()) part.status = interruption;
}

}  // namespace

std::vector<Sight> look_at(const std::vector<NamedDriver>& switches, Duration timeout,
                           const Interrupted& interrupted) {
    std::vector<SwitchTask> parts;
    parts.reserve(switches.size());
    for (const NamedDriver& each : switches)
        parts.push_back({.driver = each.driver, .intent = {}, .status = {}});
    mark_interrupted(parts, read_all(parts, {.timeout = timeout, .interrupted = interrupted}));
    std::vector<Sight> sights;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const SwitchTask& part = parts[i];
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
