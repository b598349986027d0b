// SPDX-License-Identifier: Apache-2.0

// Descriptions, plans, reports and readings of a cluster as dicts of Python, whose shape
// _core/cluster.pyi states. Bytes of a device that are no UTF-8 become U+FFFD. All need the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include "csrc/cluster/inspection.h"
#include "csrc/cluster/model/description.h"
#include "csrc/cluster/plan.h"
#include "csrc/cluster/progress.h"
#include "csrc/comm/phase/network_report.h"

namespace pccl::bindings {

[[nodiscard]] pybind11::dict to_python(const cluster::Description& description);
[[nodiscard]] pybind11::dict to_python(const cluster::Plan& plan);
[[nodiscard]] pybind11::dict to_python(const cluster::Inspection& inspection);
[[nodiscard]] pybind11::dict to_python(const cluster::Progress& progress);
[[nodiscard]] pybind11::dict to_python(const comm::NetworkReport& report);

}  // namespace pccl::bindings
