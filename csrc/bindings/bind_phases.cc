// SPDX-License-Identifier: Apache-2.0

// Bindings of a job's network, which its groups share and pccl.phases switches. Python passes the
// transaction on the switches as a function.

#include <pybind11/stl.h>

#include <exception>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/seconds.h"
#include "csrc/comm/phase/phase_network.h"

namespace pccl::bindings {

namespace py = pybind11;
using comm::PhaseLinks;
using comm::PhaseNetwork;
using py::arg;

namespace {

using NetworkPtr = std::shared_ptr<PhaseNetwork>;
/// Name, links, and whether ranks forward data of others.
using PhaseTuple = std::tuple<std::string, std::vector<std::pair<Rank, Rank>>, bool>;

NetworkPtr make_network(int ranks, const std::vector<PhaseTuple>& phases, bool has_hosts) {
    PhaseNetwork::Settings settings{.ranks = ranks, .phases = {}, .has_hosts = has_hosts};
    for (const auto& [name, links, forwards] : phases) {
        PhaseLinks phase{.name = name, .links = {}, .forwards = forwards};
        for (const auto& [from, to] : links) phase.links.push_back({from, to});
        settings.phases.push_back(std::move(phase));
    }
    return std::make_shared<PhaseNetwork>(std::move(settings));
}

/// Python functions that are called without the GIL. Their exceptions are kept, and raised at the
/// end.
class PythonSwitches {
   public:
    PythonSwitches(py::object transact, py::object read_back)
        : transact_(std::move(transact)), read_back_(std::move(read_back)) {}

    comm::Transacted transact(const std::function<Status()>& drain) {
        const py::gil_scoped_acquire gil;
        try {
            const auto [is_switched, report] = transact_(py::cpp_function([&drain] {
                                                   wait_for_all(drain);
                                               })).cast<std::pair<bool, std::string>>();
            return {.is_switched = is_switched, .report = report};
        } catch (...) {
            raised_ = std::current_exception();
            return {};
        }
    }
    /// An Exception of Python means that no answer is available. Other exceptions, such as Ctrl-C,
    /// are also kept.
    Result<bool> read_back() {
        const py::gil_scoped_acquire gil;
        try {
            return read_back_().cast<bool>();
        } catch (py::error_already_set& error) {
            if (!error.matches(PyExc_Exception)) raised_ = std::current_exception();
            return Status::unavailable(std::string(py::str(error.value())));
        }
    }
    void rethrow() const {
        if (raised_ != nullptr) std::rethrow_exception(raised_);
    }

   private:
    static void wait_for_all(const std::function<Status()>& drain) {
        const Status drained = [&] {
            const py::gil_scoped_release released;
            return drain();
        }();
        throw_unless_ok(drained);
    }

    py::object transact_;
    py::object read_back_;
    std::exception_ptr raised_;
};

std::pair<bool, std::string> switch_phase(PhaseNetwork& self, const std::string& phase,
                                          Seconds timeout, bool dry_run, py::object transact,
                                          py::object read_back) {
    PythonSwitches switches(std::move(transact), std::move(read_back));
    const comm::PhaseRequest request{
        .phase = phase,
        .dry_run = dry_run,
        .timeout = positive_duration_of(timeout),
        .transact = [&](const std::function<Status()>& drain) { return switches.transact(drain); },
        .read_back = [&] { return switches.read_back(); }};
    const auto done = [&] {
        const py::gil_scoped_release released;
        return self.switch_phase(request);
    }();
    switches.rethrow();
    throw_unless_ok(done.status());
    return {done->is_switched, done->report};
}

constexpr const char* kHandle = "pccl.PhaseNetwork";

void release(PyObject* handle) {
    delete static_cast<NetworkPtr*>(PyCapsule_GetPointer(handle, kHandle));
}

/// Returns a handle for pccl._torch, which does not have this module's types.
py::capsule handle(const NetworkPtr& self) {
    return py::capsule(new NetworkPtr(self), kHandle, &release);
}

}  // namespace

void bind_phases(extension::Module& module) {
    extension::Class<PhaseNetwork, NetworkPtr>(module, "PhaseNetwork")
        .def_init(&make_network, arg("ranks"), arg("phases"), arg("has_hosts"))
        .def_property_readonly("phase", &PhaseNetwork::phase)
        .def_property_readonly("generation", &PhaseNetwork::generation)
        .def_property_readonly("is_in_use", &PhaseNetwork::is_in_use)
        .def_property_readonly("is_controller", &PhaseNetwork::is_controller)
        .def("switch_phase", &switch_phase, arg("phase"), arg("timeout"), arg("dry_run"),
             arg("transact"), arg("read_back"))
        .def("handle", &handle);
}

}  // namespace pccl::bindings
