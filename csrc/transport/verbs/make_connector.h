// SPDX-License-Identifier: Apache-2.0

// Choice among the connectors.
#pragma once

#include <memory>

#include "csrc/transport/verbs/connect_way.h"
#include "csrc/transport/verbs/connector.h"

namespace pccl::transport::verbs {

/// Returns a connector of a way that both ends have agreed on.
[[nodiscard]] std::unique_ptr<Connector> make_connector(ConnectWay way, Connector::Role role);

}  // namespace pccl::transport::verbs
