// The types of the elements of Python buffers, by the names that numpy and the buffer protocol have
// for them.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "csrc/abi/datatype.h"
#include "csrc/base/status.h"

namespace pccl::bindings {

/// By its number in numpy's C API; nullopt for what is none of ours.
[[nodiscard]] std::optional<DataType> type_of_number(int number);

/// By numpy's letter for a kind of numbers (b, i, u, f or c), and the bytes of one; nullopt for
/// what is none of ours.
[[nodiscard]] std::optional<DataType> type_of_kind(char kind, std::size_t bytes);

/// By the name of a type that extends numpy (ml_dtypes): bfloat16, float8_e4m3fn, float8_e5m2;
/// nullopt for any other.
[[nodiscard]] std::optional<DataType> type_of_extension(std::string_view name);

/// By a buffer's format (null: bytes). kBytes for what is none of ours and can be moved all the
/// same: strings, void, longdouble. kInvalidArgument for anything else, with what to do instead.
[[nodiscard]] Result<DataType> type_of_format(const char* format, std::size_t item_bytes);

}  // namespace pccl::bindings
