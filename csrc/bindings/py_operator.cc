// SPDX-License-Identifier: Apache-2.0
#include "csrc/bindings/py_operator.h"

#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/bindings/errors.h"
#include "csrc/collective/arithmetic/arithmetic.h"

namespace pccl::bindings {

namespace py = pybind11;

PyOperator::PyOperator(py::object group, Spec spec)
    : group_(std::move(group)), spec_(std::move(spec)) {
    if (py::isinstance<PyCommunicator>(group_)) communicator_ = &group_.cast<PyCommunicator&>();
}

std::unique_ptr<PyOperator> PyOperator::bind(const py::object& x, const py::object& out,
                                             const py::str& op) const {
    comm::CommunicatorImpl& comm = *communicator();
    BufferCall call({.kind = spec_.kind, .root = spec_.root, .reducing = {.op = op_of(op)}},
                    comm.rank(), comm.size());
    call.bind(x, out);
    throw_unless_ok(call.why_refused());
    auto checked = released([&] {
        return comm::OperatorImpl::create(communicator().shared(),
                                          call.collective(spec_.algorithm));
    });
    auto made = std::make_unique<PyOperator>(group_, spec_);
    made->bound_.emplace(Bound{std::move(call.buffers()), std::move(checked)});
    return made;
}

py::object PyOperator::run(const CallOptions& options) {
    return communicator().run(bound(), options.timeout);
}

py::object PyOperator::execute(const CallOptions& options) {
    const comm::OperatorImpl& call = bound();
    Buffers held;
    held.keep(py::cast(this, py::return_value_policy::reference));
    return communicator().execute(call, std::move(held), options.timeout);
}

PyCommunicator& PyOperator::communicator() const {
    if (communicator_ != nullptr) return *communicator_;
    throw_status(Status::unsupported(
        concat("torch.distributed has no call for one algorithm: the group takes ", spec_.algorithm,
               " for the sizes that it was loaded for")));
}

const comm::OperatorImpl& PyOperator::bound() const {
    if (bound_) return bound_->call;
    static_cast<void>(communicator());
    throw_status(Status::invalid_argument(
        concat("this operator has no buffers yet: give x (and out, where ",
               schedule::to_string(spec_.kind), " has one), or use what bind() returns")));
}

std::string PyOperator::described() const {
    std::string text = concat("<pccl.Operator ", schedule::to_string(spec_.kind));
    if (bound_) {
        const Collective call = bound_->call.collective();
        text += concat(" of ", longest(call), " ", to_string(call.type));
    }
    return concat(text, spec_.algorithm.empty() ? "" : " by ", spec_.algorithm,
                  bound_ ? ">" : ", without buffers>");
}

}  // namespace pccl::bindings
