// SPDX-License-Identifier: Apache-2.0

// Element types of Python buffers, by the names in numpy and the buffer protocol.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <pccl/status.h>
#include <pccl/types.h>

namespace pccl::bindings {

/// Returns the type of a number in numpy's C API; nullopt for unsupported types.
[[nodiscard]] std::optional<DataType> type_of_number(int number);

/// Returns the type for numpy's kind of numbers (b, i, u, f or c) and their size in bytes; nullopt
/// for unsupported types.
[[nodiscard]] std::optional<DataType> type_of_kind(char kind, std::size_t bytes);

/// Returns the type for the name of a numpy extension type (ml_dtypes): bfloat16, float8_e4m3fn,
/// float8_e5m2; nullopt for others.
[[nodiscard]] std::optional<DataType> type_of_extension(std::string_view name);

/// Returns the type of a buffer's format (null: bytes); kBytes for unsupported types that can still
/// be moved: strings, void, longdouble. Returns kInvalidArgument, with an alternative, for others.
[[nodiscard]] Result<DataType> type_of_format(const char* format, std::size_t item_bytes);

}  // namespace pccl::bindings
