// SPDX-License-Identifier: Apache-2.0

// Phases of a cluster, with the circuits that carry their links.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include <pccl/export.h>
#include <pccl/phases.h>
#include <pccl/status.h>
#include "csrc/cluster/model/description.h"

namespace pccl::cluster {

class PCCL_API PhaseBook {
   public:
    explicit PhaseBook(Description description) : description_(std::move(description)) {}

    [[nodiscard]] const Description& description() const { return description_; }
    /// Adds a phase. kInvalidArgument: it is invalid; the message contains the rule.
    [[nodiscard]] Status add_phase(Phase phase);
    /// Adds a transform. kInvalidArgument: a phase does not exist, or the transform of the first
    /// phase's circuits does not carry the links of the second.
    [[nodiscard]] Status add_transform(const std::string& from, const std::string& to,
                                       Transform transform);

    /// Returns the circuits of phase `to` after phase `from` with `circuits`; if both are the same
    /// phase, `circuits`.
    [[nodiscard]] Result<CircuitsBySwitch> circuits_after(const std::string& from,
                                                          const CircuitsBySwitch& circuits,
                                                          const Phase& to) const;
    /// Returns the first phase that has these circuits by default, or by a transform from a phase
    /// with its default circuits; empty: none.
    [[nodiscard]] std::string phase_with(const CircuitsBySwitch& circuits) const;

   private:
    [[nodiscard]] const Transform* find(const std::string& from, const std::string& to) const;
    [[nodiscard]] Result<CircuitsBySwitch> transformed(const Transform& transform,
                                                       const CircuitsBySwitch& from,
                                                       const Phase& to) const;
    [[nodiscard]] bool may_have(const Phase& phase, const CircuitsBySwitch& circuits) const;

    Description description_;
    std::map<std::pair<std::string, std::string>, Transform> transforms_;
};

}  // namespace pccl::cluster
