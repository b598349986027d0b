// SPDX-License-Identifier: Apache-2.0

// VLANs of an electrical switch: ports of one VLAN reach each other.
#pragma once

#include <map>

#include "csrc/cluster/model/circuits.h"

namespace pccl::cluster {

/// Highest port number for which there are separate VLANs.
constexpr int kMostVlanPorts = 3994;

class Vlans {
   public:
    /// Joins the VLANs of two ports.
    void join(int port, int other);
    /// Returns each port with its VLAN, whose number is that of its lowest port plus 100, so that a
    /// port mostly keeps its VLAN between phases.
    [[nodiscard]] Circuits members() const;
    /// Returns the ports of a switch whose ports are on or off, each with 1.
    [[nodiscard]] Circuits ports() const;

   private:
    [[nodiscard]] int lowest_of(int port) const;

    std::map<int, int> lower_;  // of a port, another one in its VLAN; the lowest maps to itself
};

}  // namespace pccl::cluster
