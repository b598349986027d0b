// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/model/circuits.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"

namespace pccl::cluster {
namespace {

constexpr std::size_t kMostShown = 16;

Circuits without(const Circuits& all, const Circuits& those) {
    Circuits left;
    std::set_difference(all.begin(), all.end(), those.begin(), those.end(),
                        std::back_inserter(left));
    return left;
}

}  // namespace

Circuits Change::removed_for_good() const {
    Circuits left;
    for (const Circuit& gone : remove) {
        const auto next = std::lower_bound(add.begin(), add.end(), Circuit{gone.ingress, 0});
        if (next == add.end() || next->ingress != gone.ingress) left.push_back(gone);
    }
    return left;
}

Change change_between(const Circuits& from, const Circuits& to) {
    return {.remove = without(from, to), .add = without(to, from)};
}

bool is_between(const Circuits& circuits, const Circuits& from, const Circuits& to) {
    return without(without(circuits, from), to).empty();
}

std::string conflict_in(const Circuits& circuits, bool has_one_way_out) {
    std::set<int> egresses;
    for (std::size_t i = 0; i < circuits.size(); ++i) {
        if (i > 0 && circuits[i - 1].ingress == circuits[i].ingress)
            return concat("two circuits begin at port ", circuits[i].ingress);
        if (has_one_way_out && !egresses.insert(circuits[i].egress).second)
            return concat("two circuits leave by port ", circuits[i].egress);
    }
    return {};
}

std::string to_string(const Circuits& circuits) {
    if (circuits.empty()) return "none";
    return some_of(circuits, kMostShown, [](const Circuit& circuit) {
        return concat(circuit.ingress, "->", circuit.egress);
    });
}

}  // namespace pccl::cluster
