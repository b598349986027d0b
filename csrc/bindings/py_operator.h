// A collective that is bound to a group, and to buffers once they are known.
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
        std::string algorithm{};  // empty: as the group chooses
    };

    /// `group` is a pccl.Communicator; of others, such as process groups of torch, no operator can
    /// be executed.
    PyOperator(pybind11::object group, Spec spec);

    /// The same with buffers, as Call::bind() takes them. Throws what Communicator::check_call()
    /// says.
    [[nodiscard]] std::unique_ptr<PyOperator> bind(const pybind11::object& x,
                                                   const pybind11::object& out,
                                                   const pybind11::str& op) const;
    /// With the buffers that it has.
    pybind11::object run(const CallOptions& options);
    /// Likewise; an Event.
    pybind11::object execute(const CallOptions& options);

    [[nodiscard]] const pybind11::object& group() const { return group_; }
    [[nodiscard]] const Spec& spec() const { return spec_; }
    [[nodiscard]] std::string described() const;

   private:
    struct Bound {
        Buffers buffers;
        comm::Operator call;
    };

    /// Throws UnsupportedError where the group is none of ours.
    [[nodiscard]] PyCommunicator& communicator() const;
    /// Throws InvalidArgumentError where there are no buffers.
    [[nodiscard]] const comm::Operator& bound() const;

    pybind11::object group_;  // outlives what is bound to it
    Spec spec_;
    PyCommunicator* communicator_ = nullptr;
    std::optional<Bound> bound_;
};

}  // namespace pccl::bindings
