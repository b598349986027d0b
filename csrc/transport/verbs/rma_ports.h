// SPDX-License-Identifier: Apache-2.0

// Ports of this process for queue pairs of one-sided access, by lane.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "csrc/transport/verbs/connector.h"
#include "csrc/transport/verbs/make_connector.h"
#include "csrc/transport/verbs/port.h"
#include "csrc/transport/verbs/registrations.h"

namespace pccl::transport::verbs {

class RmaPorts {
   public:
    RmaPorts(std::vector<std::shared_ptr<Port>> ports, std::shared_ptr<Registrations> registrations)
        : ports_(std::move(ports)), registrations_(std::move(registrations)) {}

    [[nodiscard]] const std::vector<std::shared_ptr<Port>>& all() const { return ports_; }
    [[nodiscard]] std::shared_ptr<Port> of_lane(std::size_t lane) const {
        return ports_[lane % ports_.size()];
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
                                                  ports_.front()->adapter->waiter());
    }

   private:
    const std::vector<std::shared_ptr<Port>> ports_;
    const std::shared_ptr<Registrations> registrations_;
};

}  // namespace pccl::transport::verbs
