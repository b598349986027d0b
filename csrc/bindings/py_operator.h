// SPDX-License-Identifier: Apache-2.0

// A collective that is bound to a group, and later to buffers.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>

#include "csrc/bindings/call.h"
#include "csrc/bindings/py_communicator.h"
#include "csrc/comm/operator.h"

namespace pccl::bindings {

class PyOperator {
   public:
    struct Spec {
        CollectiveKind kind = CollectiveKind::kAllReduce;
        Rank root = kDefaultRoot;
        std::string algorithm{};  // empty: the group chooses
    };

    /// `group` is a pccl.Communicator. An operator of another group, such as torch's process
    /// groups, cannot be executed.
    PyOperator(pybind11::object group, Spec spec);

    /// Returns an operator with buffers, as for BufferCall::bind(). Throws the errors of
    /// Communicator::check_call().
    [[nodiscard]] std::unique_ptr<PyOperator> bind(const pybind11::object& x,
                                                   const pybind11::object& out,
                                                   const pybind11::str& op) const;
    /// Runs the operator on its buffers.
    pybind11::object run(const CallOptions& options);
    /// Starts the operator on its buffers, and returns an Event.
    pybind11::object execute(const CallOptions& options);

    [[nodiscard]] const pybind11::object& group() const { return group_; }
    [[nodiscard]] const Spec& spec() const { return spec_; }
    [[nodiscard]] std::string described() const;

   private:
    struct Bound {
        Buffers buffers;
        comm::OperatorImpl call;
    };

    /// Throws UnsupportedError where the group is no pccl.Communicator.
    [[nodiscard]] PyCommunicator& communicator() const;
    /// Throws InvalidArgumentError where there are no buffers.
    [[nodiscard]] const comm::OperatorImpl& bound() const;

    pybind11::object group_;  // outlives the operators that are bound to it
    Spec spec_;
    PyCommunicator* communicator_ = nullptr;
    std::optional<Bound> bound_;
};

}  // namespace pccl::bindings
