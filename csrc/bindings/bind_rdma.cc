// SPDX-License-Identifier: Apache-2.0

// Bindings of the report on RDMA devices and of their examination, for `pccl info` and `pccl
// doctor`.

#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include <pccl/deadline.h>
#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/seconds.h"
#include "csrc/bootstrap/secret_file.h"
#include "csrc/extension/gil.h"
#include "csrc/runtime/rdma.h"

namespace pccl::bindings {

namespace py = pybind11;
using py::arg;
using transport::RdmaDoctor;

namespace {

// Group of all examinations: the secret file has a secret for each group.
constexpr transport::GroupId kDoctors{'p', 'c', 'c', 'l', ' ', 'd', 'o', 'c', 't', 'o', 'r'};

py::dict to_dict(const transport::RdmaGid& gid) {
    py::dict fields;
    fields["index"] = gid.index;
    fields["type"] = gid.type;
    fields["address"] = gid.address;
    return fields;
}

py::dict to_dict(const transport::RdmaPort& port) {
    py::dict fields;
    fields["number"] = port.number;
    fields["state"] = port.state;
    fields["link_layer"] = port.link_layer;
    fields["gigabits"] = port.gigabits;
    fields["mtu"] = port.mtu_bytes;
    fields["lid"] = port.lid;
    py::list gids;
    for (const transport::RdmaGid& gid : port.gids) gids.append(to_dict(gid));
    fields["gids"] = gids;
    fields["gid_index"] = port.is_used() ? py::object(py::int_(port.gid_index)) : py::none();
    fields["used"] = port.is_used();
    fields["reason"] = port.reason;
    return fields;
}

py::dict to_dict(const transport::RdmaDevice& device) {
    py::dict fields;
    fields["name"] = device.name;
    fields["soft"] = device.is_soft;
    fields["iwarp"] = device.is_iwarp;
    py::list ports;
    for (const transport::RdmaPort& port : device.ports) ports.append(to_dict(port));
    fields["ports"] = ports;
    fields["gpu_access"] = device.gpu_access;
    fields["failure"] = device.failure;
    return fields;
}

py::dict rdma_report() {
    throw_unless_ok(check_settings());
    const transport::RdmaReport report = [] {
        const extension::ReleasedGil released;
        return runtime::rdma_report();
    }();
    py::dict fields;
    fields["library"] = report.ibverbs_path;
    fields["version"] = report.version;
    py::dict manager;
    manager["library"] = report.rdmacm_path;
    manager["version"] = report.rdmacm_version;
    manager["failure"] = report.rdmacm_failure;
    fields["rdma_cm"] = manager;
    py::list devices;
    for (const transport::RdmaDevice& device : report.devices) devices.append(to_dict(device));
    fields["devices"] = devices;
    fields["failure"] = report.failure;
    return fields;
}

std::unique_ptr<RdmaDoctor> make_doctor() {
    throw_unless_ok(check_settings());
    return released([] { return runtime::make_rdma_doctor(); });
}

std::string run_step(RdmaDoctor& self, const std::string& step, const py::bytes& peer,
                     Seconds timeout) {
    const auto* const found = std::ranges::find(transport::kRdmaSteps, step);
    if (found == transport::kRdmaSteps.end())
        throw_status(Status::invalid_argument(concat("'", step, "' is no step of an examination")));
    const auto wanted = static_cast<transport::RdmaStep>(found - transport::kRdmaSteps.begin());
    const std::string end = peer;
    const Deadline deadline = Deadline::after(positive_duration_of(timeout));
    return released([&] { return self.run(wanted, end, deadline); });
}

std::optional<py::bytes> doctor_secret() {
    throw_unless_ok(check_settings());
    const auto secret = released([] { return bootstrap::job_secret(kDoctors); });
    if (!secret) return std::nullopt;
    return py::bytes(reinterpret_cast<const char*>(secret->data()), secret->size());
}

}  // namespace

void bind_rdma(extension::Module& module) {
    module.def("rdma_report", &rdma_report);
    module.def("_doctor_secret", &doctor_secret);
    extension::Class<RdmaDoctor>(module, "_RdmaDoctor")
        .def_init(&make_doctor)
        .def("run", &run_step, arg("step"), arg("peer"), arg("timeout"))
        .def("end",
             [](RdmaDoctor& self) { return py::bytes(released([&] { return self.end(); })); });
}

}  // namespace pccl::bindings
