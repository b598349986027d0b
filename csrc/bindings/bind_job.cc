// SPDX-License-Identifier: Apache-2.0

// Bindings of pccl.topology.Job: the hosts of a job, from the bytes that its ranks exchanged.

#include <pybind11/stl.h>

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/named_results.h"
#include "csrc/bindings/names.h"
#include "csrc/comm/selection/imagined_group.h"
#include "csrc/topo/detect/gpu_copies.h"
#include "csrc/topo/job/job.h"

namespace pccl::bindings {

namespace py = pybind11;
using py::arg;
using topo::JobTopology;

namespace {

JobTopology decode(const py::bytes& blob) {
    const std::string bytes = blob;
    return released([&] { return topo::decode_job(bytes); });
}

/// Encodes a job for tests and hypothetical jobs. Each host has a name, ranks and a machine.
py::bytes encode(
    const std::vector<std::tuple<std::string, std::vector<Rank>, topo::Topology>>& of) {
    std::vector<topo::HostTopology> hosts;
    hosts.reserve(of.size());
    for (const auto& [name, ranks, machine] : of)
        hosts.push_back({.name = name, .ranks = ranks, .topology = machine});
    return topo::encode(released([&] { return JobTopology::make(std::move(hosts)); }));
}

std::vector<topo::HostLink> links_of(const JobTopology& self) {
    std::vector<topo::HostLink> links;
    const int hosts = static_cast<int>(self.hosts().size());
    for (int from = 0; from < hosts; ++from)
        for (int to = from + 1; to < hosts; ++to) links.push_back(self.link_between(from, to));
    return links;
}

/// Returns the predictions and their assumptions.
std::pair<std::vector<Prediction>, py::object> explain_job(const JobTopology& self,
                                                           const std::string& collective,
                                                           std::size_t nbytes) {
    const auto kind = kind_of(collective);
    const auto choice = released([&] { return comm::explain(self, kind, nbytes); });
    return {choice.ways, to_python(choice.counted_on)};
}

void bind_parts(extension::Module& module) {
    extension::Class<topo::HostTopology>(module, "JobHost")
        .def_readonly("name", &topo::HostTopology::name)
        .def_readonly("ranks", &topo::HostTopology::ranks)
        .def_readonly("numa", &topo::HostTopology::numa)
        .def_readonly("topology", &topo::HostTopology::topology)
        .def_property_readonly(
            "interface", [](const topo::HostTopology& self) { return self.network.interface; })
        .def_property_readonly("subnet",
                               [](const topo::HostTopology& self) { return self.network.subnet; })
        .def_property_readonly("is_measured", [](const topo::HostTopology& self) {
            return !self.calibration.is_empty();
        });
    extension::Class<topo::HostLink>(module, "JobLink")
        .def_readonly("source", &topo::HostLink::from)
        .def_readonly("target", &topo::HostLink::to)
        .def_readonly("bandwidth", &topo::HostLink::bandwidth)
        .def_readonly("latency", &topo::HostLink::latency)
        .def_readonly("same_subnet", &topo::HostLink::same_subnet)
        .def("__repr__", [](const topo::HostLink& self) {
            return concat(
                "hosts ", self.from, " and ", self.to, ": ", self.bandwidth, " GB/s",
                self.latency > 0 ? concat(", ", std::round(self.latency * 1e7) / 10, " us") : "");
        });
    extension::Class<topo::RailOfJob>(module, "JobRail")
        .def_readonly("ports", &topo::RailOfJob::ports)
        .def_readonly("bandwidth", &topo::RailOfJob::bandwidth)
        .def("__repr__", [](const topo::RailOfJob& self) {
            return concat("ports ", spaced(self.ports), ": ", self.bandwidth, " GB/s");
        });
}

}  // namespace

void bind_job(extension::Module& module) {
    bind_parts(module);
    module.def(
        "calibration_path",
        [](const std::string& digest) { return topo::calibration_path(digest); }, arg("digest"));
    module.def(
        "load_calibration",
        [](const std::string& digest) { return topo::load_calibration(digest).text(); },
        arg("digest"));
    module.def("measure_gpu_copies", [] {
        const auto copies = released([] { return topo::measure_gpu_copies(); });
        std::vector<std::tuple<std::string, std::string, double, double>> found;
        found.reserve(copies.size());
        for (const topo::GpuCopy& copy : copies)
            found.emplace_back(copy.from, copy.to, copy.times.latency, copy.times.bandwidth);
        return found;
    });
    extension::Class<JobTopology>(module, "JobTopology")
        .def_static("decode", &decode, arg("blob"))
        .def_static("encode", &encode, arg("hosts"))
        .def_property_readonly("hosts", &JobTopology::hosts)
        .def_property_readonly("rails", &JobTopology::rails)
        .def_property_readonly("warnings", &JobTopology::warnings)
        .def_property_readonly("links", &links_of)
        .def_property_readonly("lanes", &JobTopology::ring_count)
        .def_property_readonly("digest", &JobTopology::digest)
        .def_property_readonly("is_uniform", &JobTopology::is_uniform)
        .def("order",
             [](const JobTopology& self) { return released([&] { return self.order(); }); })
        .def("host_of", &JobTopology::host_of, arg("rank"))
        .def("network_bandwidth", &JobTopology::network_bandwidth, arg("host"))
        .def(
            "network_provenance",
            [](const JobTopology& self, int host) {
                return to_string(self.network_provenance(host));
            },
            arg("host"))
        .def("explain", &explain_job, arg("collective"), arg("nbytes"));
}

}  // namespace pccl::bindings
