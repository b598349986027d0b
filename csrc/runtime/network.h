// What a process has to reach others by.
#pragma once

#include <memory>
#include <vector>

#include "csrc/transport/control/control_plane.h"
#include "csrc/transport/transport.h"

namespace pccl::runtime {

struct Network {
    std::unique_ptr<transport::ControlPlane> control;
    std::vector<std::unique_ptr<transport::Transport>> transports;  // in order of preference
};

}  // namespace pccl::runtime
