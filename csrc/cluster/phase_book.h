// The phases of a cluster, and over which circuits the links of each go.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/cluster/model/description.h"

namespace pccl::cluster {

/// From what every switch has connected in one phase to what it is to connect in another: the
/// commands that lead there, as a whole. A pure function: it is also called to recognise what
/// switches show.
using Transform = std::function<Result<CircuitsBySwitch>(const CircuitsBySwitch& from)>;

class PCCL_API PhaseBook {
   public:
    explicit PhaseBook(Description description) : description_(std::move(description)) {}

    [[nodiscard]] const Description& description() const { return description_; }
    /// kInvalidArgument where it cannot be one, with what would be right.
    [[nodiscard]] Status add_phase(Phase phase);
    /// kInvalidArgument where there is no such phase, or what comes of the first one's circuits
    /// does not carry the other one's links.
    [[nodiscard]] Status add_transform(const std::string& from, const std::string& to,
                                       Transform transform);

    /// Of a phase, coming to it from another that has `circuits`; from itself: these.
    [[nodiscard]] Result<CircuitsBySwitch> circuits_after(const std::string& from,
                                                          const CircuitsBySwitch& circuits,
                                                          const Phase& to) const;
    /// The first phase that has these circuits by itself, or where a transform leads from a phase
    /// that has its own; empty: none.
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
