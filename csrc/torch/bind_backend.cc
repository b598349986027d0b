// SPDX-License-Identifier: Apache-2.0
#include "csrc/torch/bind_backend.h"

#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "csrc/base/config.h"
#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"
#include "csrc/capsule/sizes.h"
#include "csrc/collective/algorithm_list.h"
#include "csrc/comm/phase/phase_network.h"
#include "csrc/comm/selection/selector.h"
#include "csrc/device/launch/planned_launches.h"
#include "csrc/device/launch/preferences.h"
#include "csrc/extension/former_names.h"
#include "csrc/extension/gil.h"
#include "csrc/torch/arguments.h"
#include "csrc/torch/backend.h"
#include "csrc/torch/errors.h"
#include "csrc/torch/timeouts.h"

namespace pccl::backend {

namespace py = pybind11;

namespace {

using OptionsPtr = c10::intrusive_ptr<PcclOptions>;
using BackendPtr = c10::intrusive_ptr<PcclBackend>;

// Arguments of init_process_group and new_group besides the user's options.
struct GroupArgs {
    c10::intrusive_ptr<c10d::Store> store;
    Rank rank;
    int size;
    std::chrono::milliseconds timeout;
    std::string name;
    std::vector<std::uint64_t> global_ranks;
    std::string gpu;
};

/// Returns the network of a pccl.Cluster, a type of the other module; for None, that of the cluster
/// in PCCL_CLUSTER, for a group of `ranks` ranks, or null.
std::shared_ptr<comm::PhaseNetwork> network_of(const py::object& cluster, int ranks) {
    const py::object handle =
        py::module_::import("pccl.phases.switching").attr("handle_for")(cluster, ranks);
    if (handle.is_none()) return nullptr;
    return *handle.cast<py::capsule>().get_pointer<std::shared_ptr<comm::PhaseNetwork>>();
}

BackendPtr create(const GroupArgs& group, const OptionsPtr& options) {
    const auto own =
        options ? c10::make_intrusive<PcclOptions>(*options) : c10::make_intrusive<PcclOptions>();
    own->timeout = limit_of(group.timeout, "pccl:init_process_group");
    own->group_name = group.name;
    own->global_ranks_in_group = group.global_ranks;
    own->gpu = group.gpu;
    if (own->network == nullptr && own->switches_phases && !process_config().cluster.empty()) {
        const extension::HeldGil gil;
        own->network = network_of(py::none(), group.size);
    }
    return c10::make_intrusive<PcclBackend>(group.store, group.rank, group.size, own);
}

// Fields of comm::Prediction, which is a type of the other module.
using Way = std::tuple<std::string, std::string_view, double, std::string, bool, std::string_view>;

std::vector<Way> explain(PcclBackend& self, const std::string& collective, std::size_t nbytes) {
    const auto predictions = [&] {
        const extension::ReleasedGil released;
        return self.explain(collective, nbytes);
    }();
    std::vector<Way> ways;
    ways.reserve(predictions.size());
    for (const Prediction& way : predictions)
        ways.emplace_back(way.algorithm(), way.over(), way.seconds, way.busiest, way.is_chosen,
                          way.chosen_by);
    return ways;
}

// Fields of device::PlannedLaunch, for the same reason: kernel, protocol, blocks, threads, bytes,
// reason.
using GpuLaunch = std::tuple<std::string, std::string_view, int, int, std::size_t, std::string>;

/// Returns the GPUs' architecture, and the launches.
std::pair<int, std::vector<GpuLaunch>> explain_gpus(const PcclBackend& self,
                                                    const std::string& collective,
                                                    std::size_t nbytes) {
    const auto group = self.gpus_to_explain();
    const auto kind = collective_called(collective);
    std::vector<GpuLaunch> launches;
    for (const auto& [kernel, bytes, plan, why] :
         group->explain(kind, comm::block_bytes(kind, nbytes, group->size())))
        launches.emplace_back(kernel, device::name_of(plan.protocol), plan.blocks, plan.threads,
                              bytes, why);
    return {group->architecture(), std::move(launches)};
}

using CountedOn = std::tuple<std::vector<std::string>, std::vector<Rank>, int, std::string,
                             std::vector<std::string>, std::vector<std::string>>;

/// Returns links, order of ranks, number of parallel rings, source of the costs, costs, helper
/// threads.
CountedOn links_counted_on(const PcclBackend& self) {
    const bootstrap::LinksCountedOn found = self.communicator().links_counted_on();
    return {found.links,      found.order, found.ring_count,
            found.costs_from, found.costs, found.helpers};
}

/// Loads `content`, a capsule's bytes, or the path of its file if `is_path`. Returns name,
/// collective and root.
std::tuple<std::string, std::string_view, Rank> load_capsule(
    PcclBackend& self, const py::bytes& content, bool is_path,
    const std::optional<std::string>& sizes) {
    const std::string bytes = content;
    const Result<capsule::VerifiedCapsule> loaded = [&] {
        using capsule::CapsuleFile;
        const extension::ReleasedGil released;
        return self.load_capsule(is_path ? CapsuleFile::read(bytes) : CapsuleFile::parse(bytes),
                                 sizes);
    }();
    throw_unless_ok("pccl:load_capsule", loaded.status());
    const schedule::Schedule& schedule = loaded->schedule();
    return {schedule.name, schedule::to_string(schedule.shape.kind), schedule.shape.root};
}

void unload_capsule(PcclBackend& self, const std::string& name) {
    const Status unloaded = [&] {
        const extension::ReleasedGil released;
        return self.unload_capsule(name);
    }();
    throw_unless_ok("pccl:unload_capsule", unloaded);
}

/// Returns name, collective and sizes of each loaded capsule.
std::vector<std::tuple<std::string, std::string_view, std::string, std::string>> loaded_capsules(
    const PcclBackend& self) {
    std::vector<std::tuple<std::string, std::string_view, std::string, std::string>> found;
    for (const schedule::SourcePtr& source : self.communicator().loaded())
        found.emplace_back(source->name, schedule::to_string(source->kind),
                           capsule::to_text(*source->sizes), hex_digits(source->digest));
    return found;
}

void record_timeline(PcclBackend& self, std::size_t steps) {
    const extension::ReleasedGil released;
    throw_unless_ok("pccl:record_timeline", self.record_timeline(steps));
}

/// Returns the steps, the number of dropped steps, and the clock error in nanoseconds.
std::tuple<std::vector<schedule::TimedStepFields>, std::uint64_t, std::int64_t> take_timeline(
    PcclBackend& self) {
    const schedule::TimedSteps taken = [&] {
        const extension::ReleasedGil released;
        auto steps = self.take_timeline();
        throw_unless_ok("pccl:timeline", steps.status());
        return *std::move(steps);
    }();
    std::vector<schedule::TimedStepFields> fields;
    fields.reserve(taken.steps.size());
    for (const schedule::TimedStep& step : taken.steps) fields.push_back(fields_of(step));
    return {std::move(fields), taken.lost, taken.clock_error.count()};
}

py::bytes describe_job(const PcclBackend& self) {
    const auto described = [&] {
        const extension::ReleasedGil released;
        return self.communicator().describe_job();
    }();
    throw_unless_ok("pccl:topology", described.status());
    return *described;
}

// The fields of pccl.results.peer_health.PeerHealth without the rank.
using Fares = std::tuple<std::string_view, std::string, std::optional<double>, std::uint64_t,
                         std::string, std::vector<int>, std::string, std::vector<int>>;

std::vector<Fares> health(const PcclBackend& self, std::chrono::milliseconds timeout) {
    std::vector<Fares> all;
    auto peers = self.communicator().survey(limit_of(timeout, "pccl:health"));
    throw_unless_ok("pccl:health", peers.status());
    for (comm::SurveyedPeer& peer : *peers) {
        std::optional<double> seconds;
        if (peer.last_sign) seconds = std::chrono::duration<double>(*peer.last_sign).count();
        all.emplace_back(to_string(peer.state), peer.detail, seconds, peer.rank_status.sequence,
                         peer.rank_status.operation, peer.rank_status.awaited,
                         peer.rank_status.gpu_operation, peer.rank_status.gpu_awaited);
    }
    return all;
}

std::vector<Rank> missing(const PcclBackend& self) {
    const auto found = [&] {
        const extension::ReleasedGil released;
        return self.communicator().missing();
    }();
    throw_unless_ok("pccl:shrink", found.status());
    return *found;
}

/// Returns one allocator per process: pools keep its memory until the process ends.
py::object mem_allocator() {
    static PyObject* const allocator = [] {
        const py::object pluggable =
            py::module_::import("torch.cuda").attr("CUDAPluggableAllocator");
        const py::object path = py::module_::import("pccl._torch").attr("__file__");
        return pluggable(path, "pccl_gpu_allocate", "pccl_gpu_free").release().ptr();
    }();
    return py::handle(allocator).attr("allocator")();
}

void set_max_blocks(PcclOptions& options, std::optional<int> blocks) {
    throw_unless_ok("pccl.Options",
                    device::check_preferences({.most_blocks = blocks.value_or(abi::kMostBlocks)}));
    options.max_blocks = blocks;
}

void set_protocol(PcclOptions& options, const std::string& name) {
    if (name.empty()) return options.protocol.reset();
    const auto protocol = device::protocol_named(name);
    throw_unless_ok("pccl.Options", protocol.status());
    extension::warn_of_former_protocol(name, device::name_of(*protocol));
    options.protocol = *protocol;
}

std::string protocol_of(const PcclOptions& options) {
    return options.protocol ? std::string(device::name_of(*options.protocol)) : "";
}

std::string printed(const PcclOptions& options) {
    const char* const engines = !options.copy_engines   ? "None"
                                : *options.copy_engines ? "True"
                                                        : "False";
    const auto number = [](std::optional<int> value) {
        return value ? std::to_string(*value) : std::string("None");
    };
    return concat("pccl.Options(transports='", options.transports, "', algorithm='",
                  options.algorithm, "', copy_engines=", engines,
                  ", max_blocks=", number(options.max_blocks), ", protocol='", protocol_of(options),
                  "', least=", number(options.least), ", timeline=", options.timeline, ")");
}

}  // namespace

void bind_options(extension::Module& module) {
    extension::Class<PcclOptions, c10d::Backend::Options, OptionsPtr>(module, "Options")
        .def_init(
            [](const std::string& transports, const std::string& algorithm,
               std::optional<bool> copy_engines, std::optional<int> max_blocks,
               const std::string& protocol, std::optional<int> least, std::size_t timeline,
               const py::object& cluster) {
                throw_unless_ok("pccl.Options", check_algorithm_list(algorithm));
                auto options = c10::make_intrusive<PcclOptions>();
                options->transports = transports;
                options->algorithm = algorithm;
                options->copy_engines = copy_engines;
                set_max_blocks(*options, max_blocks);
                set_protocol(*options, protocol);
                options->least = least;
                options->timeline = timeline;
                if (!cluster.is_none()) options->network = network_of(cluster, 0);
                return options;
            },
            py::kw_only(), py::arg("transports") = "", py::arg("algorithm") = "",
            py::arg("copy_engines") = std::optional<bool>(),
            py::arg("max_blocks") = std::optional<int>(), py::arg("protocol") = "",
            py::arg("least") = std::optional<int>(), py::arg("timeline") = 0,
            py::arg("cluster") = py::none())
        .def_readwrite("transports", &PcclOptions::transports)
        .def_readwrite("algorithm", &PcclOptions::algorithm)
        .def_readwrite("copy_engines", &PcclOptions::copy_engines)
        .def_property(
            "max_blocks", [](const PcclOptions& self) { return self.max_blocks; }, &set_max_blocks)
        .def_property("protocol", &protocol_of, &set_protocol)
        .def_readwrite("least", &PcclOptions::least)
        .def_readwrite("timeline", &PcclOptions::timeline)
        .def("__repr__", &printed)
        .def("_follow",
             [](PcclOptions& self, const PcclOptions& leading) {
                 self.network = leading.network;
                 self.switches_phases = false;
             })
        .def("__copy__",
             [](const PcclOptions& self) { return c10::make_intrusive<PcclOptions>(self); })
        .def("__deepcopy__", [](const PcclOptions& self,
                                const py::dict&) { return c10::make_intrusive<PcclOptions>(self); })
        .refuse_new("pccl.Options()");
}

void bind_backend(extension::Module& module) {
    extension::Class<PcclBackend, c10d::Backend, BackendPtr>(module, "ProcessGroupPCCL")
        .def_init(
            [](c10::intrusive_ptr<c10d::Store> store, Rank rank, int size,
               std::chrono::milliseconds timeout, std::string name,
               std::vector<std::uint64_t> global_ranks, std::string gpu,
               const OptionsPtr& options) {
                const extension::ReleasedGil released;
                return create({std::move(store), rank, size, timeout, std::move(name),
                               std::move(global_ranks), std::move(gpu)},
                              options);
            },
            py::arg("store"), py::arg("rank"), py::arg("size"), py::kw_only(), py::arg("timeout"),
            py::arg("name"), py::arg("global_ranks"), py::arg("gpu") = "",
            py::arg("options") = OptionsPtr())
        .def_property_readonly("options", &PcclBackend::getBackendOptions)
        .def_property_readonly("mem_allocator", [](const PcclBackend&) { return mem_allocator(); })
        .def("get_error", &PcclBackend::getError, py::call_guard<extension::ReleasedGil>())
        .def("explain", &explain, py::arg("collective"), py::arg("nbytes"))
        .def("explain_gpus", &explain_gpus, py::arg("collective"), py::arg("nbytes"))
        .def("links_counted_on", &links_counted_on)
        .def("load_capsule", &load_capsule, py::arg("content"), py::arg("is_path"),
             py::arg("sizes"))
        .def("unload_capsule", &unload_capsule, py::arg("name"))
        .def("loaded_capsules", &loaded_capsules)
        .def("describe_job", &describe_job)
        .def("record_timeline", &record_timeline, py::arg("steps"))
        .def("_take_timeline", &take_timeline)
        .def("missing", &missing)
        .def("health", &health, py::arg("timeout"), py::call_guard<extension::ReleasedGil>())
        .def("_enable_collectives_timing", &PcclBackend::enableCollectivesTiming)
        // new_group calls this on ranks outside the group, for every backend that supports
        // splitting.
        .def(
            "perform_nocolor_split", [](const PcclBackend&, const py::object&) {},
            py::arg("device"))
        .refuse_new("torch.distributed.init_process_group(\"pccl\")");
}

}  // namespace pccl::backend
