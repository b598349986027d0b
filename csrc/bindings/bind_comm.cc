// SPDX-License-Identifier: Apache-2.0

// Bindings of Communicator: collectives and messages over numpy arrays and other buffers.

#include <pybind11/stl.h>

#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/named_results.h"
#include "csrc/bindings/names.h"
#include "csrc/bindings/py_communicator.h"
#include "csrc/bindings/py_memory.h"
#include "csrc/bindings/py_operator.h"
#include "csrc/bindings/quick_call.h"
#include "csrc/bindings/seconds.h"
#include "csrc/comm/selection/tuning.h"
#include "csrc/costs/kept_costs.h"
#include "csrc/extension/gil.h"

namespace pccl::bindings {

namespace py = pybind11;
using py::arg;

namespace {

constexpr double kDefaultTimeout = std::chrono::duration<double>(pccl::kDefaultTimeout).count();
constexpr std::size_t kUsualTimeline = std::size_t{1} << 18U;
using Object = const py::object&;
using Op = const Reducing&;
using Root = Or<kDefaultRoot>;

// Defines a method whose last keywords are async_op and timeout.
template <typename Class, typename Method, typename... Args>
void def_call(Class& cls, const char* name, Method method, const Args&... args) {
    cls.def(name, method, args..., py::kw_only(), arg("async_op") = false,
            arg("timeout") = py::none());
}

void monitored_barrier(PyCommunicator& self, Seconds timeout, bool wait_all_ranks) {
    const auto limit = in_milliseconds(duration_of(timeout));
    Status status;
    {
        const extension::ReleasedGil released;
        status = (*self).monitored_barrier(limit, wait_all_ranks);
    }
    throw_unless_ok(status);
}

std::string printed_prediction(const Prediction& prediction) {
    return concat(prediction.algorithm(), " over ", prediction.over(), ": ",
                  std::round(prediction.seconds * 1e7) / 10, " us",
                  prediction.is_chosen ? ", chosen" : "");
}

void bind_predictions(extension::Module& module) {
    extension::Class<Prediction>(module, "Prediction")
        .def_property_readonly("algorithm", &Prediction::algorithm)
        .def_property_readonly("over", &Prediction::over)
        .def_readonly("seconds", &Prediction::seconds)
        .def_readonly("busiest", &Prediction::busiest)
        .def_readonly("aggregation", &Prediction::aggregation)
        .def_readonly("is_chosen", &Prediction::is_chosen)
        .def_readonly("chosen_by", &Prediction::chosen_by)
        .def("__repr__", &printed_prediction);
}

/// Returns the source of the costs, and one line per cost.
std::pair<std::string, std::vector<std::string>> machine_costs() {
    const extension::ReleasedGil released;
    const costs::MachineCosts& costs = costs::process_costs();
    return {costs::source_of(costs), costs::lines_of(costs)};
}

std::vector<Prediction> explain_call(PyCommunicator& self, const std::string& collective,
                                     std::size_t nbytes) {
    const auto kind = kind_of(collective);
    return released([&] { return (*self).explain(kind, nbytes); });
}

py::bytes describe_job(PyCommunicator& self) {
    return released([&] { return (*self).describe_job(); });
}

void bind_premul_sum(extension::Module& module) {
    extension::Class<PremulSum>(module, "PremulSum")
        .def_init([](double factor) { return PremulSum{factor}; }, arg("factor"))
        .def_readonly("factor", &PremulSum::factor)
        .def("__repr__", [](const PremulSum& self) {
            return concat("PremulSum(factor=", std::string(py::repr(py::float_(self.factor))), ")");
        });
}

void bind_collectives(extension::Class<PyCommunicator>& cls) {
    using Self = PyCommunicator;
    def_call(
        cls, "all_reduce",
        [](Self& self, Object x, Op op, bool async_op, OptionalSeconds timeout) {
            return self.all_reduce(x, op, {async_op, timeout});
        },
        arg("x"), arg("op") = kDefaultOp);
    def_call(
        cls, "broadcast",
        [](Self& self, Object x, Rank root, bool async_op, OptionalSeconds timeout) {
            return self.broadcast(x, root, {async_op, timeout});
        },
        arg("x"), arg("root") = kDefaultRoot);
    def_call(
        cls, "reduce",
        [](Self& self, Object x, Rank root, Op op, bool async_op, OptionalSeconds timeout) {
            return self.reduce(x, root, op, {async_op, timeout});
        },
        arg("x"), arg("root") = kDefaultRoot, arg("op") = kDefaultOp);
    def_call(
        cls, "all_gather",
        [](Self& self, Object out, Object x, bool async_op, OptionalSeconds timeout) {
            return self.all_gather(out, x, {async_op, timeout});
        },
        arg("out"), arg("x"));
    def_call(
        cls, "reduce_scatter",
        [](Self& self, Object out, Object x, Op op, bool async_op, OptionalSeconds timeout) {
            return self.reduce_scatter(out, x, op, {async_op, timeout});
        },
        arg("out"), arg("x"), arg("op") = kDefaultOp);
    def_call(
        cls, "gather",
        [](Self& self, Object out, Object x, Rank root, bool async_op, OptionalSeconds timeout) {
            return self.gather(out, x, root, {async_op, timeout});
        },
        arg("out"), arg("x"), arg("root") = kDefaultRoot);
    def_call(
        cls, "scatter",
        [](Self& self, Object out, Object x, Rank root, bool async_op, OptionalSeconds timeout) {
            return self.scatter(out, x, root, {async_op, timeout});
        },
        arg("out"), arg("x"), arg("root") = kDefaultRoot);
    def_call(
        cls, "all_to_all",
        [](Self& self, Object out, Object x, bool async_op, OptionalSeconds timeout) {
            return self.all_to_all(out, x, {async_op, timeout});
        },
        arg("out"), arg("x"));
}

void make_collectives_quick(py::handle cls) {
    make_quick<&PyCommunicator::all_reduce, Object, Op>(cls, "all_reduce");
    make_quick<&PyCommunicator::broadcast, Object, Root>(cls, "broadcast");
    make_quick<&PyCommunicator::reduce, Object, Root, Op>(cls, "reduce");
    make_quick<&PyCommunicator::all_gather, Object, Object>(cls, "all_gather");
    make_quick<&PyCommunicator::reduce_scatter, Object, Object, Op>(cls, "reduce_scatter");
    make_quick<&PyCommunicator::gather, Object, Object, Root>(cls, "gather");
    make_quick<&PyCommunicator::scatter, Object, Object, Root>(cls, "scatter");
    make_quick<&PyCommunicator::all_to_all, Object, Object>(cls, "all_to_all");
}

void bind_messages(extension::Class<PyCommunicator>& cls) {
    using Self = PyCommunicator;
    def_call(
        cls, "send",
        [](Self& self, Object x, Rank peer, int tag, bool async_op, OptionalSeconds timeout) {
            return self.send(x, peer, tag, {async_op, timeout});
        },
        arg("x"), arg("peer"), arg("tag") = kDefaultTag);
    def_call(
        cls, "recv",
        [](Self& self, Object x, std::optional<Rank> peer, int tag, bool async_op,
           OptionalSeconds timeout) {
            return self.receive(x, peer.value_or(kAnySource), tag, {async_op, timeout});
        },
        arg("x"), arg("peer") = py::none(), arg("tag") = kDefaultTag);
    make_quick<&PyCommunicator::send, Object, Rank, Or<kDefaultTag>>(cls, "send");
    make_quick<&PyCommunicator::receive, Object, Rank, Or<kDefaultTag>>(cls, "recv");
}

py::module_ objects() { return py::module_::import("pccl.communicator.objects"); }

void bind_objects(extension::Class<PyCommunicator>& cls) {
    cls.def(
        "send_object",
        [](Object self, Object value, Rank peer, int tag, OptionalSeconds timeout) {
            objects().attr("send")(self, value, peer, tag, timeout);
        },
        arg("value"), arg("peer"), arg("tag") = kDefaultTag, py::kw_only(),
        arg("timeout") = py::none());
    cls.def(
        "recv_object",
        [](Object self, std::optional<Rank> peer, int tag, OptionalSeconds timeout) {
            return objects().attr("receive")(self, peer, tag, timeout);
        },
        arg("peer") = py::none(), arg("tag") = kDefaultTag, py::kw_only(),
        arg("timeout") = py::none());
    cls.def(
        "broadcast_object",
        [](Object self, Object value, Rank root, OptionalSeconds timeout) {
            return objects().attr("broadcast")(self, value, root, timeout);
        },
        arg("value"), arg("root") = kDefaultRoot, py::kw_only(), arg("timeout") = py::none());
}

PyOperator operator_of(const py::object& self, const capsule::VerifiedCapsule& loaded,
                       const std::string& name) {
    const schedule::Shape& shape = loaded.schedule().shape;
    return PyOperator(self, {shape.kind, shape.root, name});
}

/// Returns a pccl.phases.switched_operator.SwitchedOperator of phases and operators.
py::object switched_operator(const py::object& self, const capsule::VerifiedCapsule& loaded) {
    const schedule::Shape& shape = loaded.schedule().shape;
    py::list parts;
    for (const auto& [phase, source] : loaded.parts()) {
        const py::object part = source == nullptr
                                    ? py::object(py::none())
                                    : py::cast(operator_of(self, loaded, source->name));
        parts.append(py::make_tuple(phase, part));
    }
    return py::module_::import("pccl.phases.switched_operator")
        .attr("SwitchedOperator")(self, loaded.schedule().name, to_string(shape.kind), shape.root,
                                  parts);
}

void bind_capsules(extension::Class<PyCommunicator>& cls) {
    cls.def(
        "load",
        [](Object self, Object capsule, const std::optional<std::string>& sizes,
           OptionalSeconds timeout) {
            const capsule::VerifiedCapsule loaded =
                self.cast<PyCommunicator&>().load(capsule, sizes, timeout);
            return loaded.switches_phases()
                       ? switched_operator(self, loaded)
                       : py::cast(operator_of(self, loaded, loaded.schedule().name));
        },
        arg("capsule"), arg("sizes") = py::none(), py::kw_only(), arg("timeout") = py::none());
    cls.def("unload", &PyCommunicator::unload, arg("name"), py::kw_only(),
            arg("timeout") = py::none());
    cls.def("capsules", &PyCommunicator::loaded);
}

void bind_timelines(extension::Class<PyCommunicator>& cls) {
    cls.def(
        "record_timeline",
        [](PyCommunicator& self, std::size_t steps) {
            throw_unless_ok((*self).record_timeline(steps));
        },
        arg("steps") = kUsualTimeline);
    cls.def("_take_timeline", [](PyCommunicator& self) {
        const comm::TimedSteps taken = released([&] { return (*self).take_timeline(); });
        py::list steps;
        for (const comm::TimedStep& step : taken.steps) steps.append(fields_of(step));
        return py::make_tuple(steps, taken.lost, taken.clock_error.count());
    });
}

void bind_operators(extension::Class<PyCommunicator>& cls) {
    cls.def(
        "operator",
        [](Object self, const std::string& collective, Object x, Object out, const py::str& op,
           Rank root, const std::string& algorithm) {
            return PyOperator(self, {kind_of(collective), root, algorithm}).bind(x, out, op);
        },
        arg("collective"), arg("x") = py::none(), arg("out") = py::none(), py::kw_only(),
        arg("op") = kDefaultOp, arg("root") = kDefaultRoot, arg("algorithm") = "");
}

/// Returns the network of `cluster`, or of the cluster in PCCL_CLUSTER; null: none.
std::shared_ptr<comm::PhaseNetwork> network_for(Object cluster, int world_size) {
    if (cluster.is_none() && process_config().cluster.empty()) return nullptr;
    return py::module_::import("pccl.phases.switching")
        .attr("network_for")(cluster, world_size)
        .cast<std::shared_ptr<comm::PhaseNetwork>>();
}

Status shut_down(PyCommunicator& self) {
    const extension::ReleasedGil released;
    return (*self).shutdown();
}

/// Ends a with block. An exception propagates, and peers receive its name.
void leave_block(PyCommunicator& self, const py::object& type, const py::object& /*error*/,
                 const py::object& /*traceback*/) {
    if (type.is_none()) return throw_unless_ok(shut_down(self));
    const std::string name = py::str(type.attr("__name__"));
    {
        const extension::ReleasedGil released;
        (*self).abort(Status::aborted(concat(name, " ended the group's with block")));
    }
    static_cast<void>(shut_down(self));
}

// Binds barriers, the end and the replacement of a group, and the health of its ranks.
void bind_life(extension::Class<PyCommunicator>& cls) {
    cls.def(
        "barrier",
        [](PyCommunicator& self, OptionalSeconds timeout) {
            return self.barrier({.timeout = timeout});
        },
        arg("timeout") = py::none());
    make_quick<&PyCommunicator::barrier>(cls, "barrier");
    cls.def("monitored_barrier", &monitored_barrier, arg("timeout"), py::kw_only(),
            arg("wait_all_ranks") = false);
    cls.def(
        "abort",
        [](PyCommunicator& self, const std::string& reason) {
            const extension::ReleasedGil released;
            (*self).abort(Status::aborted(reason));
        },
        arg("reason") = "abort was called");
    cls.def("health", &PyCommunicator::health, arg("timeout") = 1.0);
    cls.def("shrink", &PyCommunicator::shrink, arg("ranks_to_exclude") = py::none(), py::kw_only(),
            arg("least") = py::none());
    cls.def("split", &PyCommunicator::split, arg("color"), arg("key") = 0, py::kw_only(),
            arg("timeout") = py::none());
    cls.def("shutdown", [](PyCommunicator& self) { throw_unless_ok(shut_down(self)); });
    cls.def("__enter__", [](py::object self) { return self; });
    cls.def("__exit__", &leave_block, arg("type"), arg("error"), arg("traceback"));
}

}  // namespace

void bind_communicator(extension::Module& module) {
    extension::Class<PyCommunicator> cls(module, "Communicator");
    cls.def_init(
        [](std::optional<Rank> rank, std::optional<int> world_size, const py::object& rendezvous,
           Seconds timeout, std::string name, std::string transports, std::string algorithm,
           std::string gpu, const py::object& cluster) {
            Meeting meeting = meeting_of(rendezvous, rank, world_size);
            auto network = network_for(cluster, meeting.place.world_size);
            return std::make_unique<PyCommunicator>(
                GroupOptions{std::move(meeting), timeout, std::move(name), std::move(transports),
                             std::move(algorithm), std::move(gpu), std::move(network)});
        },
        py::kw_only(), arg("rank") = py::none(), arg("world_size") = py::none(),
        arg("rendezvous") = "auto", arg("timeout") = kDefaultTimeout, arg("name") = "world",
        arg("transports") = "", arg("algorithm") = "", arg("gpu") = "",
        arg("cluster") = py::none());
    cls.def_property_readonly("rank", [](PyCommunicator& self) { return (*self).rank(); });
    cls.def_property_readonly("world_size", [](PyCommunicator& self) { return (*self).size(); });
    cls.def_property_readonly("name", [](PyCommunicator& self) { return (*self).name(); });
    cls.def_property_readonly("_network", [](PyCommunicator& self) { return (*self).network(); });
    cls.def_property_readonly("sequence", [](PyCommunicator& self) { return (*self).sequence(); });
    cls.def("__repr__", [](PyCommunicator& self) {
        return concat("<pccl.Communicator \"", (*self).name(), "\": rank ", (*self).rank(), " of ",
                      (*self).size(), (*self).is_over() ? ", over" : "", ">");
    });
    cls.def_property_readonly("memory", [](py::object self) {
        static_cast<void>(self.cast<PyCommunicator&>());  // throws where __init__ has not run
        return PyMemory(std::move(self));
    });
    bind_predictions(module);
    bind_premul_sum(module);
    module.def("tuning_path", &comm::tuning_path);
    module.def("topology_hash", &comm::topology_hash);
    module.def("costs_path", [] { return costs::costs_path(); });
    module.def("machine_costs", &machine_costs);
    cls.def("explain", &explain_call, arg("collective"), arg("nbytes"));
    cls.def("links_counted_on",
            [](PyCommunicator& self) { return to_python((*self).links_counted_on()); });
    cls.def("describe_job", &describe_job);
    bind_collectives(cls);
    make_collectives_quick(cls);
    bind_messages(cls);
    bind_objects(cls);
    bind_capsules(cls);
    bind_timelines(cls);
    bind_operators(cls);
    bind_life(cls);
}

}  // namespace pccl::bindings
