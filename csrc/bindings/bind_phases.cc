// SPDX-License-Identifier: Apache-2.0

// Bindings of clusters and of a job's network: pccl.Cluster holds the controller of the switches,
// and pccl.switch_phase passes it to the network that the groups share.

#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/base/scope_exit.h"
#include "csrc/bindings/bind.h"
#include "csrc/bindings/cluster_values.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/seconds.h"
#include "csrc/cluster/controller.h"
#include "csrc/cluster/file/cluster_file.h"
#include "csrc/comm/phase/phase_network.h"
#include "csrc/extension/gil.h"
#include "csrc/extension/signals.h"

namespace pccl::bindings {

namespace py = pybind11;
using cluster::ClusterContext;
using cluster::Controller;
using comm::PhaseLinks;
using comm::PhaseNetwork;
using py::arg;

namespace {

/// Progress of a transaction, which another thread may read. The switching thread never waits for
/// readers.
class ProgressBoard {
   public:
    void write(const cluster::Progress& progress) {
        const std::lock_guard lock(mutex_);
        progress_ = progress;
    }
    [[nodiscard]] cluster::Progress read() const {
        const std::lock_guard lock(mutex_);
        return progress_;
    }

   private:
    mutable std::mutex mutex_;
    cluster::Progress progress_;
};

using BoardPtr = std::shared_ptr<ProgressBoard>;
using ControllerPtr = std::shared_ptr<Controller>;
using NetworkPtr = std::shared_ptr<PhaseNetwork>;
/// Name, links, and whether ranks forward data of others.
using PhaseTuple = std::tuple<std::string, std::vector<std::pair<Rank, Rank>>, bool>;

cluster::Watch watch_by(const BoardPtr& board) {
    if (board == nullptr) return {};
    return [board](const cluster::Progress& now) { board->write(now); };
}

/// Returns the time limit of a step. A switch that needs an hour for one is considered lost.
Duration time_limit(double seconds) {
    return std::min<Duration>(positive_duration_of(seconds), std::chrono::hours(1));
}

/// Calls `work` without the GIL, and returns its result. Ctrl-C takes effect afterwards, once
/// everything that was begun has ended.
template <typename Work>
auto uninterrupted(const Work& work) {
    auto result = [&] {
        const extension::ReleasedGil released;
        return work();
    }();
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    return value_or_throw(std::move(result));
}

ControllerPtr open_cluster(const std::string& text, const std::string& name) {
    return std::make_shared<Controller>(released([&]() -> Result<std::unique_ptr<ClusterContext>> {
        PCCL_ASSIGN_OR_RETURN(auto description, cluster::parse_cluster_file(text, name));
        return ClusterContext::open(std::move(description));
    }));
}

py::tuple state_of(const Controller& self) {
    const cluster::ClusterState state = self.state();
    return py::make_tuple(state.phase, state.generation, state.degraded);
}

/// Arguments of Controller.switch_phase besides the phase.
struct SwitchArguments {
    bool dry_run = false;
    bool adopt = false;
    bool discard_candidate = false;
};

py::dict switch_cluster(Controller& self, const std::string& phase, Seconds timeout,
                        const SwitchArguments& wanted, const BoardPtr& progress) {
    const cluster::SwitchOptions options{.step_timeout = time_limit(timeout),
                                         .dry_run = wanted.dry_run,
                                         .adopt = wanted.adopt,
                                         .discard_candidate = wanted.discard_candidate,
                                         .interrupted = &extension::check_signals,
                                         .watch = watch_by(progress)};
    return to_python(
        network_report(uninterrupted([&] { return self.switch_phase(phase, options); })));
}

py::dict inspect(Controller& self, Seconds timeout) {
    const Duration longest = time_limit(timeout);
    return to_python(
        uninterrupted([&] { return self.inspect(longest, &extension::check_signals); }));
}

void adopt(Controller& self, Seconds timeout) {
    const Duration longest = time_limit(timeout);
    uninterrupted([&]() -> Result<bool> {
        PCCL_TRY(self.adopt(longest, &extension::check_signals));
        return true;
    });
}

NetworkPtr make_network(int ranks, const std::vector<PhaseTuple>& phases, bool has_hosts) {
    PhaseNetwork::Settings settings{.ranks = ranks, .phases = {}, .has_hosts = has_hosts};
    for (const auto& [name, links, forwards] : phases) {
        PhaseLinks phase{.name = name, .links = {}, .forwards = forwards};
        for (const auto& [from, to] : links) phase.links.push_back({from, to});
        settings.phases.push_back(std::move(phase));
    }
    return std::make_shared<PhaseNetwork>(std::move(settings));
}

py::dict switch_network(PhaseNetwork& self, const std::string& phase, Seconds timeout,
                        const ControllerPtr& controller, const SwitchArguments& wanted,
                        const BoardPtr& progress) {
    const comm::PhaseRequest request{.phase = phase,
                                     .dry_run = wanted.dry_run,
                                     .timeout = positive_duration_of(timeout),
                                     .controller = controller.get(),
                                     .discard_candidate = wanted.discard_candidate,
                                     .interrupted = &extension::check_signals};
    controller->set_watch(watch_by(progress));
    const ScopeExit unwatched([&] { controller->set_watch({}); });
    return to_python(uninterrupted([&] { return self.switch_phase(request); }));
}

constexpr const char* kHandle = "pccl.PhaseNetwork";

void release(PyObject* handle) {
    delete static_cast<NetworkPtr*>(PyCapsule_GetPointer(handle, kHandle));
}

/// Returns a handle for pccl._torch, which does not have this module's types.
py::capsule handle(const NetworkPtr& self) {
    return py::capsule(new NetworkPtr(self), kHandle, &release);
}

void bind_controller(extension::Module& module) {
    extension::Class<ProgressBoard, BoardPtr>(module, "ProgressBoard")
        .def_init([] { return std::make_shared<ProgressBoard>(); })
        .def("read", [](const ProgressBoard& self) { return to_python(self.read()); });

    extension::Class<Controller, ControllerPtr>(module, "Controller")
        .def_init(&open_cluster, arg("text"), arg("name"))
        .def_property_readonly("description",
                               [](const Controller& self) { return to_python(self.description()); })
        .def_property_readonly("state", &state_of)
        .def(
            "plan",
            [](Controller& self, const std::string& source, const std::string& target) {
                return to_python(value_or_throw(self.plan(source, target)));
            },
            arg("source"), arg("target"))
        .def(
            "switch_phase",
            [](Controller& self, const std::string& phase, Seconds timeout, bool dry_run,
               bool adopt, bool discard_candidate, const BoardPtr& progress) {
                return switch_cluster(self, phase, timeout, {dry_run, adopt, discard_candidate},
                                      progress);
            },
            arg("phase"), arg("timeout"), arg("dry_run"), arg("adopt"), arg("discard_candidate"),
            arg("progress") = py::none())
        .def("inspect", &inspect, arg("timeout"))
        .def("adopt", &adopt, arg("timeout"))
        .def("audit", [](Controller& self) { return value_or_throw(self.audit()); });
}

void bind_network(extension::Module& module) {
    extension::Class<PhaseNetwork, NetworkPtr>(module, "PhaseNetwork")
        .def_init(&make_network, arg("ranks"), arg("phases"), arg("has_hosts"))
        .def_property_readonly("phase", &PhaseNetwork::phase)
        .def_property_readonly("generation", &PhaseNetwork::generation)
        .def_property_readonly("is_in_use", &PhaseNetwork::is_in_use)
        .def_property_readonly("is_controller", &PhaseNetwork::is_controller)
        .def(
            "switch_phase",
            [](PhaseNetwork& self, const std::string& phase, Seconds timeout,
               const ControllerPtr& controller, bool dry_run, bool discard_candidate,
               const BoardPtr& progress) {
                return switch_network(self, phase, timeout, controller,
                                      {.dry_run = dry_run, .discard_candidate = discard_candidate},
                                      progress);
            },
            arg("phase"), arg("timeout"), arg("controller").none(false), arg("dry_run"),
            arg("discard_candidate"), arg("progress") = py::none())
        .def("handle", &handle);
}

}  // namespace

void bind_phases(extension::Module& module) {
    bind_controller(module);
    bind_network(module);
}

}  // namespace pccl::bindings
