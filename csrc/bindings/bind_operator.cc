// SPDX-License-Identifier: Apache-2.0

// Bindings of Operator: a collective that is made once and executed repeatedly.

#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "csrc/bindings/bind.h"
#include "csrc/bindings/names.h"
#include "csrc/bindings/py_operator.h"
#include "csrc/bindings/quick_call.h"
#include "csrc/bindings/seconds.h"

namespace pccl::bindings {

namespace py = pybind11;
using py::arg;

namespace {

/// Returns the operator with the call's own buffers, or itself where the call has none.
py::object with_buffers(const py::object& self, const py::object& x, const py::object& out,
                        const py::str& op) {
    if (x.is_none() && out.is_none()) return self;
    return py::cast(self.cast<PyOperator&>().bind(x, out, op));
}

std::unique_ptr<PyOperator> make_operator(py::object group, std::string name,
                                          const std::string& collective, Rank root) {
    return std::make_unique<PyOperator>(
        std::move(group),
        PyOperator::Spec{.kind = kind_of(collective), .root = root, .algorithm = std::move(name)});
}

}  // namespace

void bind_operator(extension::Module& module) {
    extension::Class<PyOperator> cls(module, "Operator");
    cls.def_init(&make_operator, arg("group"), arg("name"), arg("collective"),
                 arg("root") = kDefaultRoot)
        .def_property_readonly("group", &PyOperator::group)
        .def_property_readonly("name", [](const PyOperator& self) { return self.spec().algorithm; })
        .def_property_readonly(
            "collective",
            [](const PyOperator& self) { return schedule::to_string(self.spec().kind); })
        .def_property_readonly("root", [](const PyOperator& self) { return self.spec().root; })
        .def("bind", &PyOperator::bind, arg("x") = py::none(), arg("out") = py::none(),
             py::kw_only(), arg("op") = kDefaultOp)
        .def(
            "execute",
            [](const py::object& self, const py::object& x, const py::object& out,
               const py::str& op, OptionalSeconds timeout) {
                const py::object bound = with_buffers(self, x, out, op);
                return bound.cast<PyOperator&>().execute({.timeout = timeout});
            },
            arg("x") = py::none(), arg("out") = py::none(), py::kw_only(), arg("op") = kDefaultOp,
            arg("timeout") = py::none())
        .def(
            "run",
            [](const py::object& self, const py::object& x, const py::object& out,
               const py::str& op, OptionalSeconds timeout) {
                const py::object bound = with_buffers(self, x, out, op);
                return bound.cast<PyOperator&>().run({.timeout = timeout});
            },
            arg("x") = py::none(), arg("out") = py::none(), py::kw_only(), arg("op") = kDefaultOp,
            arg("timeout") = py::none())
        .def("__repr__", &PyOperator::described);
    make_quick<&PyOperator::run>(cls, "run");
    make_quick<&PyOperator::execute>(cls, "execute");
}

}  // namespace pccl::bindings
