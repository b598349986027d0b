// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/model/vlans.h"

#include <algorithm>

namespace pccl::cluster {
namespace {

constexpr int kVlansBefore = 100;

}  // namespace

int Vlans::lowest_of(int port) const {
    while (lower_.at(port) != port) port = lower_.at(port);
    return port;
}

void Vlans::join(int port, int other) {
    lower_.try_emplace(port, port);
    lower_.try_emplace(other, other);
    const auto [low, high] = std::minmax({lowest_of(port), lowest_of(other)});
    lower_[high] = low;
}

Circuits Vlans::members() const {
    Circuits list;
    for (const auto& [port, _] : lower_) list.push_back({port, kVlansBefore + lowest_of(port)});
    return list;
}

Circuits Vlans::ports() const {
    Circuits list;
    for (const auto& [port, _] : lower_) list.push_back({port, 1});
    return list;
}

}  // namespace pccl::cluster
