// SPDX-License-Identifier: Apache-2.0

// Ports of this process for queue pairs of one-sided access, by lane.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "csrc/transport/verbs/connector.h"
#include "csrc/transport/verbs/make_connector.h"
#include "csrc/transport/verbs/port.h"
#include "csrc/transport/verbs/port_pairs.h"
#include "csrc/transport/verbs/registrations.h"

namespace pccl::transport::verbs {

class RmaPorts {
   public:
    /// `all` are those of the process; `initiators` are those that reach the peer.
    RmaPorts(std::vector<std::shared_ptr<Port>> initiators, std::vector<std::shared_ptr<Port>> all,
             std::shared_ptr<Registrations> registrations)
        : initiators_(std::move(initiators)),
          all_(std::move(all)),
          registrations_(std::move(registrations)) {}

    [[nodiscard]] const std::vector<std::shared_ptr<Port>>& all() const { return all_; }
    [[nodiscard]] const std::vector<std::shared_ptr<Port>>& initiators() const {
        return initiators_;
    }
    [[nodiscard]] std::shared_ptr<Port> of_initiator(std::size_t lane) const {
        return initiators_[lane % initiators_.size()];
    }
    /// Returns the port that responds to a lane of the peer: one in the subnet of the peer's port,
    /// if there are any.
    [[nodiscard]] std::shared_ptr<Port> of_responder(std::size_t lane,
                                                     const sys::verbs::RawGid& peer) const {
        std::vector<std::shared_ptr<Port>> near;
        std::ranges::copy_if(all_, std::back_inserter(near), [&](const auto& port) {
            return shares_subnet(peer, {port->gid.gid, port->subnet_bits});
        });
        const auto& among = near.empty() ? all_ : near;
        return among[lane % among.size()];
    }
    /// Returns the index of the port's device in the keys of registrations.
    [[nodiscard]] std::size_t device_of(const Port& port) const {
        const auto adapters = registrations_->adapters();
        return static_cast<std::size_t>(std::ranges::find(adapters, port.adapter) -
                                        adapters.begin());
    }
    [[nodiscard]] std::unique_ptr<WatchedConnector> connector(ConnectWay way,
                                                              Connector::Role role) const {
        return std::make_unique<WatchedConnector>(make_connector(way, role),
                                                  all_.front()->adapter->waiter());
    }

   private:
    const std::vector<std::shared_ptr<Port>> initiators_;
    const std::vector<std::shared_ptr<Port>> all_;
    const std::shared_ptr<Registrations> registrations_;
};

}  // namespace pccl::transport::verbs
