// What an electrical switch is told, so that ports reach each other: those of one VLAN do.
#pragma once

#include <map>

#include "csrc/cluster/model/circuits.h"

namespace pccl::cluster {

/// Ports up to this can be in VLANs of their own.
constexpr int kMostVlanPorts = 3994;

class Vlans {
   public:
    /// From now on these two reach each other, and all that either of them reached.
    void join(int port, int other);
    /// Each port with its VLAN, which has the number of its lowest port and 100, so that a port
    /// keeps it from phase to phase where it can.
    [[nodiscard]] Circuits members() const;
    /// The same of a switch whose ports are on or off: each with 1.
    [[nodiscard]] Circuits ports() const;

   private:
    [[nodiscard]] int lowest_of(int port) const;

    std::map<int, int> lower_;  // of a port, one of the same VLAN; the lowest has itself
};

}  // namespace pccl::cluster
