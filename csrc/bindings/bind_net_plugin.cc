// SPDX-License-Identifier: Apache-2.0

// Binding of the report on the net plug-in, for `pccl topo`.

#include <pybind11/pybind11.h>

#include "csrc/base/config.h"
#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/extension/gil.h"
#include "csrc/runtime/net_plugin.h"

namespace pccl::bindings {

namespace py = pybind11;

namespace {

py::dict net_device_fields(const runtime::NetDevice& device) {
    py::dict fields;
    fields["name"] = device.name;
    fields["pci_path"] = device.pci_path;
    fields["guid"] = device.guid;
    fields["megabits"] = device.megabits;
    fields["port"] = device.port;
    fields["latency_us"] = device.latency_us;
    fields["max_recvs"] = device.max_recvs;
    fields["rail"] = device.rail;
    fields["plane"] = device.plane;
    return fields;
}

py::dict net_plugin_report() {
    throw_unless_ok(check_settings());
    const runtime::NetPluginReport report = [] {
        const extension::ReleasedGil released;
        return runtime::net_plugin_report();
    }();
    py::dict fields;
    fields["file"] = report.file;
    fields["symbol"] = report.symbol;
    fields["name"] = report.name;
    py::list devices;
    for (const runtime::NetDevice& device : report.devices)
        devices.append(net_device_fields(device));
    fields["devices"] = devices;
    fields["failure"] = report.failure;
    return fields;
}

}  // namespace

void bind_net_plugin(extension::Module& module) {
    module.def("net_plugin_report", &net_plugin_report);
}

}  // namespace pccl::bindings
