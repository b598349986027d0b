// SPDX-License-Identifier: Apache-2.0
#include "csrc/torch/errors.h"

#include <torch/csrc/Exceptions.h>

#include <string>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/base/threads/background_thread.h"
#include "csrc/extension/gil.h"

namespace pccl::backend {

namespace py = pybind11;

namespace {

/// Exception that torch converts to the Python class of python_type(), even where it does not call
/// translators, for example under autograd.
class StatusError final : public torch::PyTorchError {
   public:
    StatusError(std::string text, Status status)
        : PyTorchError(std::move(text)), status_(std::move(status)) {}

    /// Returns a class whose instances contain the failed rank although they are made from the text
    /// alone. Borrowed: Python keeps it.
    PyObject* python_type() override {
        const PeerProcess& process = status_.process();
        return py::module_::import("pccl.torch.errors")
            .attr("class_of")(std::string(to_string(status_.code())), status_.peer(), process.host,
                              process.pid)
            .ptr();
    }

   private:
    Status status_;
};

// torch's own tests require " Timed out " in the text of a barrier's timeout.
std::string text_of(std::string_view operation, const Status& status) {
    if (status.code() == StatusCode::kTimeout) {
        return concat(operation, " Timed out (", status.to_string(), ")");
    }
    return concat(operation, " failed: ", status.to_string());
}

void throw_what_python_raised() {
    if (!is_main_thread() || Py_IsInitialized() == 0) return;
    const extension::HeldGil gil;
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
}

}  // namespace

void throw_status(std::string_view operation, const Status& status) {
    if (status.code() == StatusCode::kAborted) throw_what_python_raised();
    throw StatusError(text_of(operation, status), status);
}

std::exception_ptr to_exception(std::string_view operation, const Status& status) {
    if (status.is_ok()) return nullptr;
    try {
        throw_status(operation, status);
    } catch (...) {
        return std::current_exception();
    }
}

void register_exception_translator() {
    py::register_exception_translator([](std::exception_ptr error) {
        try {
            if (error) std::rethrow_exception(std::move(error));
        } catch (StatusError& known) {
            PyErr_SetString(known.python_type(), known.what());
        }
    });
}

}  // namespace pccl::backend
