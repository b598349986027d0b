// SPDX-License-Identifier: Apache-2.0

// Bindings of DeviceGroup: collectives on raw GPU addresses and streams, independent of tensor
// libraries.

#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/names.h"
#include "csrc/bindings/seconds.h"
#include "csrc/bindings/store_adaptor.h"
#include "csrc/collective/algorithm_list.h"
#include "csrc/comm/selection/selector.h"
#include "csrc/device/device_group.h"
#include "csrc/device/gpu_path.h"
#include "csrc/device/launch/preferences.h"
#include "csrc/extension/former_names.h"
#include "csrc/extension/gil.h"
#include "csrc/extension/signals.h"

namespace pccl::bindings {

namespace py = pybind11;
using device::DeviceGroupImpl;
using py::arg;

namespace {

kernels::LaunchPlan make_plan(const std::string& protocol, int blocks, int threads) {
    const auto found = device::protocol_named(protocol);
    if (!found.is_ok()) throw_status(found.status());
    extension::warn_of_former_protocol(protocol, device::name_of(*found));
    return {.protocol = *found, .blocks = blocks, .threads = threads};
}

std::string printed_plan(const kernels::LaunchPlan& plan) {
    return concat(device::name_of(plan.protocol), ", ", plan.blocks, " blocks of ", plan.threads);
}

struct PyDeviceGroup {
    PyDeviceGroup() = default;
    PyDeviceGroup(const PyDeviceGroup&) = delete;
    PyDeviceGroup& operator=(const PyDeviceGroup&) = delete;
    /// Releases the GIL: kernels of the group may take a while to end.
    ~PyDeviceGroup() {
        const extension::ReleasedGil released;
        group.reset();
    }

    std::shared_ptr<Store> store;  // outlives the group: its destructor may need the GIL
    std::shared_ptr<device::DeviceGroupImpl> group;
};

std::unique_ptr<PyDeviceGroup> make_group(std::optional<Rank> rank, std::optional<int> world_size,
                                          const py::object& rendezvous, int device, Seconds timeout,
                                          const std::string& algorithm, const std::string& name) {
    throw_unless_ok(check_settings());
    throw_unless_ok(pccl::check_algorithm_list(algorithm));
    const auto limit = in_milliseconds(positive_duration_of(timeout));
    auto made = std::make_unique<PyDeviceGroup>();
    const Meeting meeting = meeting_of(rendezvous, rank, world_size);
    made->store = store_at(meeting, name, Deadline::after(limit), StoreContent::kNone);
    const extension::ReleasedGil released;
    auto group = device::create_interruptibly({.rank = meeting.place.rank,
                                               .size = meeting.place.world_size,
                                               .store = made->store,
                                               .name = name,
                                               .device = device,
                                               .timeout = limit,
                                               .peer_access = process_config().gpu_peer_access,
                                               .host_kernels = process_config().gpu_host_kernels,
                                               .algorithms = algorithm},
                                              extension::check_signals);
    const extension::HeldGil gil;
    made->group = value_or_throw(std::move(group));
    return made;
}

/// Returns `number` consecutive blocks, as many as the collective has on that side of this rank.
std::vector<Block> blocks_at(std::uint64_t address, std::size_t count, std::size_t bytes,
                             int number) {
    std::vector<Block> blocks;
    blocks.reserve(static_cast<std::size_t>(number));
    auto* at = std::bit_cast<std::byte*>(address);
    for (int i = 0; i < number; ++i, at += count * bytes) blocks.push_back({at, count});
    return blocks;
}

int block_count(const Collective& collective, const device::DeviceGroupImpl& group,
                schedule::Buffer buffer) {
    const bool is_root = !schedule::is_rooted(collective.kind) || group.rank() == collective.root;
    const bool is_input = buffer == schedule::Buffer::kInput;
    const bool is_roots = is_input ? collective.kind == schedule::CollectiveKind::kScatter ||
                                         collective.kind == schedule::CollectiveKind::kBroadcast
                                   : collective.kind == schedule::CollectiveKind::kGather ||
                                         collective.kind == schedule::CollectiveKind::kReduce;
    if (is_roots && !is_root) return 0;
    return schedule::blocks(collective.kind, buffer, group.size());
}

device::DeviceLaunch launch_of(schedule::CollectiveKind kind,
                               std::optional<kernels::LaunchPlan> plan,
                               const std::optional<std::string>& algorithm) {
    device::DeviceLaunch wanted{.plan = plan};
    if (!algorithm) return wanted;
    wanted.schedule = schedule::built_in()->find(*algorithm, kind);
    if (wanted.schedule == nullptr)
        throw_status(Status::invalid_argument(
            concat("'", *algorithm, "' is no schedule of ", schedule::to_string(kind))));
    return wanted;
}

void launch(PyDeviceGroup& self, const std::string& collective, std::uint64_t input,
            std::uint64_t output, std::size_t count, const std::string& dtype,
            const std::string& op, Rank root, std::uint64_t stream,
            std::optional<kernels::LaunchPlan> plan, const std::optional<std::string>& algorithm) {
    Collective wanted{.kind = kind_of(collective),
                      .type = named(dtype, DataType::kFloat8E5m2, "element type"),
                      .op = named(op, ReduceOp::kBxor, "reduction"),
                      .root = root};
    const auto side = [&](std::uint64_t address, schedule::Buffer buffer) {
        return blocks_at(address, count, size_of(wanted.type),
                         block_count(wanted, *self.group, buffer));
    };
    const auto inputs = side(input, schedule::Buffer::kInput);
    const auto outputs = side(output, schedule::Buffer::kOutput);
    wanted.inputs = inputs;
    wanted.outputs = outputs;
    wanted.is_even = may_be_even(wanted.kind);
    const device::DeviceLaunch how = launch_of(wanted.kind, plan, algorithm);
    Status status;
    {
        const extension::ReleasedGil released;
        status = self.group->launch(wanted, std::bit_cast<kernels::Stream>(stream), how);
    }
    throw_unless_ok(status);
}

using Triple = std::tuple<Rank, std::uint64_t, std::size_t>;

std::vector<device::PeerMessage> messages_of(const std::vector<Triple>& triples) {
    std::vector<device::PeerMessage> messages;
    messages.reserve(triples.size());
    for (const auto& [peer, address, bytes] : triples)
        messages.push_back({peer, std::bit_cast<std::byte*>(address), bytes});
    return messages;
}

void exchange(PyDeviceGroup& self, const std::vector<Triple>& sends,
              const std::vector<Triple>& receives, std::uint64_t stream) {
    const auto sent = messages_of(sends);
    const auto received = messages_of(receives);
    Status status;
    {
        const extension::ReleasedGil released;
        status = self.group->exchange({.sends = sent, .receives = received},
                                      std::bit_cast<kernels::Stream>(stream));
    }
    throw_unless_ok(status);
}

/// Checks the group. It may notify the peers of its finding.
void check(const PyDeviceGroup& self) {
    const Status health = [&self] {
        const extension::ReleasedGil released;
        return self.group->health();
    }();
    throw_unless_ok(health);
}

/// Returns the GPUs of a hypothetical group.
kernels::Gpus gpus(int count, int architecture = kernels::kHopper) {
    if (count < 2 || count > abi::kMostDevices)
        throw_status(Status::invalid_argument(
            concat("a plan for ", count, " GPUs; 2 to ", abi::kMostDevices, " work")));
    if (architecture <= 0)
        throw_status(Status::invalid_argument(
            concat("no GPU is of architecture ", architecture, "; 90 is sm_90")));
    return {count, architecture};
}

void bind_plan(extension::Module& module) {
    extension::Class<kernels::LaunchPlan>(module, "DevicePlan")
        .def_init(&make_plan, py::kw_only(), arg("protocol"), arg("blocks"), arg("threads") = 512)
        .def_property_readonly(
            "protocol",
            [](const kernels::LaunchPlan& plan) { return device::name_of(plan.protocol); })
        .def_readonly("blocks", &kernels::LaunchPlan::blocks)
        .def_readonly("threads", &kernels::LaunchPlan::threads)
        .def_property_readonly(
            "why", [](const kernels::LaunchPlan& plan) { return std::string(plan.why); })
        .def("__repr__", &printed_plan);
    module.def(
        "device_plan",
        [](const std::string& collective, std::size_t nbytes, int world_size) {
            return device::plan_collective(kind_of(collective), nbytes, gpus(world_size));
        },
        arg("collective"), arg("nbytes"), arg("world_size"));
}

void bind_planned_launches(extension::Module& module) {
    using device::PlannedLaunch;
    extension::Class<PlannedLaunch>(module, "PlannedLaunch")
        .def_readonly("kernel", &PlannedLaunch::kernel)
        .def_readonly("nbytes", &PlannedLaunch::bytes)
        .def_readonly("plan", &PlannedLaunch::plan)
        .def_readonly("why", &PlannedLaunch::why);
    module.def(
        "planned_launches",
        [](const std::string& collective, std::size_t nbytes, int world_size, int architecture) {
            const auto kind = kind_of(collective);
            return device::planned_launches(kind, comm::block_bytes(kind, nbytes, world_size),
                                            gpus(world_size, architecture));
        },
        arg("collective"), arg("nbytes"), arg("world_size"), arg("architecture"));
    module.def("gpu_path", [] {
        const py::gil_scoped_release released;
        const auto driver = sys::cuda::process_driver();
        if (!driver.is_ok()) return std::string();
        const auto& config = process_config();
        return device::describe_path(
            **driver, device::paths_by(config.gpu_peer_access, config.gpu_host_kernels));
    });
    module.def(
        "gpus_measured_for",
        [](int architecture) {
            return std::string(kernels::thresholds_of(architecture).measured_on);
        },
        arg("architecture"));
}

const char* short_name_of(kernels::GpuPath path) {
    switch (path) {
        case kernels::GpuPath::kHost:
            return "host";
        case kernels::GpuPath::kPcie:
            return "pcie";
        case kernels::GpuPath::kPeer:
            break;
    }
    return "peer";
}

std::vector<device::PlannedLaunch> explain_launches(const PyDeviceGroup& self,
                                                    const std::string& collective,
                                                    std::size_t nbytes) {
    const auto kind = kind_of(collective);
    return self.group->explain(kind, comm::block_bytes(kind, nbytes, self.group->size()));
}

}  // namespace

void bind_device(extension::Module& module) {
    bind_plan(module);
    bind_planned_launches(module);
    extension::Class<PyDeviceGroup>(module, "DeviceGroup")
        .def_init(&make_group, py::kw_only(), arg("rank") = py::none(),
                  arg("world_size") = py::none(), arg("rendezvous") = py::none(), arg("device"),
                  arg("timeout") = 1800.0, arg("algorithm") = "", arg("name") = "world")
        .def_property_readonly("rank", [](const PyDeviceGroup& self) { return self.group->rank(); })
        .def_property_readonly("world_size",
                               [](const PyDeviceGroup& self) { return self.group->size(); })
        .def_property_readonly("heap_bytes",
                               [](const PyDeviceGroup& self) { return self.group->heap_bytes(); })
        .def_property_readonly(
            "path", [](const PyDeviceGroup& self) { return short_name_of(self.group->path()); })
        .def_property_readonly("architecture",
                               [](const PyDeviceGroup& self) { return self.group->architecture(); })
        .def("explain", &explain_launches, arg("collective"), arg("nbytes"))
        .def("launch", &launch, arg("collective"), py::kw_only(), arg("input"), arg("output"),
             arg("count"), arg("dtype"), arg("op") = "sum", arg("root") = 0, arg("stream") = 0,
             arg("plan") = py::none(), arg("algorithm") = py::none())
        .def("exchange", &exchange, py::kw_only(), arg("sends"), arg("receives"), arg("stream") = 0)
        .def("check", &check)
        .def("__repr__",
             [](const PyDeviceGroup& self) {
                 return concat("<pccl.DeviceGroup: rank ", self.group->rank(), " of ",
                               self.group->size(), ">");
             })
        .def(
            "abort", [](PyDeviceGroup& self) { self.group->abort(); },
            py::call_guard<extension::ReleasedGil>());
}

}  // namespace pccl::bindings
