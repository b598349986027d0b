// SPDX-License-Identifier: Apache-2.0

// Bindings of pccl.Cluster, the controller of phases. Results are passed as JSON text, which Python
// parses.

#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/seconds.h"
#include "csrc/cluster/cluster_context.h"
#include "csrc/cluster/file/cluster_file.h"
#include "csrc/cluster/result_json.h"
#include "csrc/extension/signals.h"

namespace pccl::bindings {

namespace py = pybind11;
using cluster::ClusterContext;
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
    [[nodiscard]] std::string text() const {
        const std::lock_guard lock(mutex_);
        return json_of(progress_);
    }

   private:
    mutable std::mutex mutex_;
    cluster::Progress progress_;
};

std::unique_ptr<ClusterContext> open_cluster(const std::string& text, const std::string& name) {
    return released([&]() -> Result<std::unique_ptr<ClusterContext>> {
        PCCL_ASSIGN_OR_RETURN(auto description, cluster::parse_cluster_file(text, name));
        return ClusterContext::open(std::move(description));
    });
}

/// Returns the time limit of a step. A switch that needs an hour for one is considered lost.
Duration time_limit(double seconds) {
    return std::min<Duration>(positive_duration_of(seconds), std::chrono::hours(1));
}

std::string plan(const ClusterContext& self, const std::string& source, const std::string& target) {
    return json_of(value_or_throw(self.plan(source, target)));
}

/// Calls `work` without the GIL, and returns its result. Ctrl-C takes effect afterwards, once
/// everything that was begun has ended.
template <typename Work>
auto uninterrupted(const Work& work) {
    auto result = [&] {
        const py::gil_scoped_release released;
        return work();
    }();
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    return result;
}

/// Calls `drain` between two steps of a transaction. A Python exception in it ends the transaction;
/// Ctrl-C takes effect once everything has ended.
Status drained(const py::object& drain) {
    const py::gil_scoped_acquire gil;
    try {
        drain();
        return Status::ok();
    } catch (py::error_already_set& error) {
        const std::string reason = py::str(error.value());
        if (!error.matches(PyExc_Exception)) error.restore();
        return Status::aborted(reason);
    }
}

/// Arguments of switch_to besides the phase.
struct Wanted {
    bool dry_run = false;
    bool adopt = false;
    bool discard_candidate = false;
};

std::string switch_to(ClusterContext& self, const std::string& phase, Seconds timeout,
                      const Wanted& wanted, const py::object& drain,
                      const std::shared_ptr<ProgressBoard>& progress) {
    cluster::SwitchOptions options{.step_timeout = time_limit(timeout),
                                   .dry_run = wanted.dry_run,
                                   .adopt = wanted.adopt,
                                   .discard_candidate = wanted.discard_candidate,
                                   .interrupted = &extension::check_signals};
    if (!drain.is_none()) options.drain = [&] { return drained(drain); };
    if (progress != nullptr)
        options.watch = [&](const cluster::Progress& now) { progress->write(now); };
    return json_of(
        value_or_throw(uninterrupted([&] { return self.switch_phase(phase, options); })));
}

std::string inspect(ClusterContext& self, Seconds timeout) {
    const Duration longest = time_limit(timeout);
    return json_of(uninterrupted([&] { return self.inspect(longest, &extension::check_signals); }));
}

void adopt(ClusterContext& self, Seconds timeout) {
    const Duration longest = time_limit(timeout);
    throw_unless_ok(uninterrupted([&] { return self.adopt(longest, &extension::check_signals); }));
}

std::string inherit(ClusterContext& self, Seconds timeout) {
    const cluster::SwitchOptions options{.step_timeout = time_limit(timeout),
                                         .interrupted = &extension::check_signals};
    return value_or_throw(uninterrupted([&] { return self.inherit(options); }));
}

}  // namespace

void bind_cluster(extension::Module& module) {
    extension::Class<ProgressBoard, std::shared_ptr<ProgressBoard>>(module, "ProgressBoard")
        .def_init([] { return std::make_shared<ProgressBoard>(); })
        .def_property_readonly("text", &ProgressBoard::text);

    extension::Class<ClusterContext>(module, "Controller")
        .def_init(&open_cluster, arg("text"), arg("name"))
        .def_property_readonly(
            "description", [](const ClusterContext& self) { return json_of(self.description()); })
        .def_property_readonly("current", &ClusterContext::current)
        .def_property_readonly("generation", &ClusterContext::generation)
        .def_property_readonly("degraded",
                               [](const ClusterContext& self) { return self.degraded().message(); })
        .def("plan", &plan, arg("source"), arg("target"))
        .def(
            "switch_to",
            [](ClusterContext& self, const std::string& phase, Seconds timeout, bool dry_run,
               bool adopt, bool discard_candidate, const py::object& drain,
               const std::shared_ptr<ProgressBoard>& progress) {
                return switch_to(self, phase, timeout, {dry_run, adopt, discard_candidate}, drain,
                                 progress);
            },
            arg("phase"), arg("timeout"), arg("dry_run"), arg("adopt"), arg("discard_candidate"),
            arg("drain") = py::none(), arg("progress") = py::none())
        .def("inspect", &inspect, arg("timeout"))
        .def("adopt", &adopt, arg("timeout"))
        .def("inherit", &inherit, arg("timeout"))
        .def("audit", &ClusterContext::audit);
}

}  // namespace pccl::bindings
