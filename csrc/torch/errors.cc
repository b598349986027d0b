#include "csrc/torch/errors.h"

#include <c10/util/Exception.h>

#include "csrc/base/text.h"

namespace pccl::backend {

namespace {

// torch's own tests look for " Timed out " in whatever a barrier that timed out says.
std::string text_of(std::string_view operation, const Status& status) {
    if (status.code() == StatusCode::kTimeout) {
        return concat(operation, " Timed out (", status.to_string(), ")");
    }
    return concat(operation, " failed: ", status.to_string());
}

}  // namespace

void throw_status(std::string_view operation, const Status& status) {
    const std::string text = text_of(operation, status);
    switch (status.code()) {
        case StatusCode::kInvalidArgument:
            C10_THROW_ERROR(ValueError, text);
        case StatusCode::kUnsupported:
            C10_THROW_ERROR(NotImplementedError, text);
        default:
            C10_THROW_ERROR(DistBackendError, text);
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

}  // namespace pccl::backend
