// The types of the elements of Python buffers, by the names that numpy and the buffer protocol have
// for them.
#pragma once

#include <cstddef>
#include <optional>

#include "csrc/abi/datatype.h"
#include "csrc/base/status.h"

namespace pccl::bindings {

/// By its number in numpy's C API; nullopt for what is none of ours.
[[nodiscard]] std::optional<DataType> type_of_number(int number);

/// By a buffer's format (null: bytes). kBytes for what is none of ours and can be moved all the
/// same: strings, void, longdouble. kInvalidArgument for anything else, with what to do instead.
[[nodiscard]] Result<DataType> type_of_format(const char* format, std::size_t item_bytes);

}  // namespace pccl::bindings
