#include "csrc/torch/errors.h"

#include <c10/util/Exception.h>

#include <string>

#include "csrc/base/background_thread.h"
#include "csrc/base/text.h"

namespace pccl::backend {

namespace py = pybind11;

namespace {

/// What an exception of either torch's classes carries besides.
class CarriesStatus {
   public:
    CarriesStatus(std::string text, Status status)
        : text_(std::move(text)), status_(std::move(status)) {}
    virtual ~CarriesStatus() = default;
    CarriesStatus(const CarriesStatus&) = default;
    CarriesStatus& operator=(const CarriesStatus&) = delete;
    [[nodiscard]] const std::string& text() const { return text_; }
    [[nodiscard]] const Status& status() const { return status_; }

   private:
    std::string text_;
    Status status_;
};

template <typename TorchError>
class StatusError final : public TorchError, public CarriesStatus {
   public:
    StatusError(const std::string& text, const Status& status)
        : TorchError({__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)}, text),
          CarriesStatus(text, status) {}
};

// torch's own tests look for " Timed out " in whatever a barrier that timed out says.
std::string text_of(std::string_view operation, const Status& status) {
    if (status.code() == StatusCode::kTimeout) {
        return concat(operation, " Timed out (", status.to_string(), ")");
    }
    return concat(operation, " failed: ", status.to_string());
}

void raise_in_python(const CarriesStatus& error) {
    const Status& status = error.status();
    const py::object made =
        py::module_::import("pccl.torch_errors")
            .attr("error_of")(std::string(to_string(status.code())), error.text(), status.peer(),
                              status.process().host, status.process().pid);
    PyErr_SetObject(py::type::of(made).ptr(), made.ptr());
}

void throw_what_python_raised() {
    if (!is_main_thread() || Py_IsInitialized() == 0) return;
    const py::gil_scoped_acquire gil;
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
}

}  // namespace

void throw_status(std::string_view operation, const Status& status) {
    if (status.code() == StatusCode::kAborted) throw_what_python_raised();
    const std::string text = text_of(operation, status);
    switch (status.code()) {
        case StatusCode::kInvalidArgument:
            throw StatusError<c10::ValueError>(text, status);
        case StatusCode::kUnsupported:
            throw StatusError<c10::NotImplementedError>(text, status);
        default:
            throw StatusError<c10::DistBackendError>(text, status);
    }
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
        } catch (const CarriesStatus& known) {
            raise_in_python(known);
        }
    });
}

Status check_python_signals() {
    if (!is_main_thread() || Py_IsInitialized() == 0) return Status::ok();
    const py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() == 0) return Status::ok();
    return Status::aborted("a signal interrupted this rank (Ctrl-C?)");
}

}  // namespace pccl::backend
