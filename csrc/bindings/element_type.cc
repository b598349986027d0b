// SPDX-License-Identifier: Apache-2.0
#include "csrc/bindings/element_type.h"

#include <pybind11/numpy.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "csrc/base/text/text.h"

namespace pccl::bindings {
namespace {

constexpr int kNumpyHalf = 23;  // not named by pybind11

std::optional<DataType> signed_type(std::size_t bytes) {
    switch (bytes) {
        case 1:
            return DataType::kInt8;
        case 2:
            return DataType::kInt16;
        case 4:
            return DataType::kInt32;
        case 8:
            return DataType::kInt64;
        default:
            return std::nullopt;
    }
}

std::optional<DataType> unsigned_type(std::size_t bytes) {
    switch (bytes) {
        case 1:
            return DataType::kUint8;
        case 2:
            return DataType::kUint16;
        case 4:
            return DataType::kUint32;
        case 8:
            return DataType::kUint64;
        default:
            return std::nullopt;
    }
}

std::optional<DataType> float_type(std::size_t bytes) {
    switch (bytes) {
        case 2:
            return DataType::kFloat16;
        case 4:
            return DataType::kFloat32;
        case 8:
            return DataType::kFloat64;
        default:
            return std::nullopt;
    }
}

std::optional<DataType> complex_type(std::size_t bytes) {
    switch (bytes) {
        case 8:
            return DataType::kComplex64;
        case 16:
            return DataType::kComplex128;
        default:
            return std::nullopt;
    }
}

/// Returns nullopt for an unsupported code, or a different number of bytes.
std::optional<DataType> type_of_code(char code, std::size_t item_bytes) {
    const auto of_bytes = [item_bytes](std::size_t bytes, DataType type) {
        return item_bytes == bytes ? std::optional(type) : std::nullopt;
    };
    switch (code) {
        case '?':
            return of_bytes(1, DataType::kBool);
        case 'e':
            return of_bytes(2, DataType::kFloat16);
        case 'f':
            return of_bytes(4, DataType::kFloat32);
        case 'd':
            return of_bytes(8, DataType::kFloat64);
        case 'b':
            return of_bytes(1, DataType::kInt8);
        case 'B':
            return of_bytes(1, DataType::kUint8);
        case 'h':
            return of_bytes(2, DataType::kInt16);
        case 'H':
            return of_bytes(2, DataType::kUint16);
        case 'i':
            return of_bytes(4, DataType::kInt32);
        case 'I':
            return of_bytes(4, DataType::kUint32);
        case 'q':
            return of_bytes(8, DataType::kInt64);
        case 'Q':
            return of_bytes(8, DataType::kUint64);
        // 4 bytes in the standard sizes, and on some machines.
        case 'l':
            return item_bytes == 4 ? DataType::kInt32 : of_bytes(8, DataType::kInt64);
        case 'L':
            return item_bytes == 4 ? DataType::kUint32 : of_bytes(8, DataType::kUint64);
        default:
            return std::nullopt;
    }
}

bool is_number(std::string_view code) {
    constexpr std::string_view kNumbers = "?efdbBhHiIqQlL";
    return code.size() == 1 && kNumbers.find(code.front()) != std::string_view::npos;
}

/// Returns the error for a code whose size differs. ctypes uses "B" for packed structures and for
/// unions.
Status contradiction(std::string_view code, std::size_t item_bytes) {
    return Status::invalid_argument(
        concat("has elements of ", item_bytes, " bytes, which its format '", code,
               "' does not mean (ctypes writes so of packed structures and unions): pass "
               "numpy.frombuffer(x, dtype) with the type of what they hold, or 'u1' for bytes"));
}

/// Returns whether the format is a code, perhaps after a count, without pointers or parts. Such
/// bytes have the same meaning everywhere.
bool is_plain(std::string_view code) {
    code.remove_prefix(std::min(code.find_first_not_of("0123456789"), code.size()));
    constexpr std::string_view kPlain[] = {"c", "s", "p", "x", "u", "w", "g", "Zg"};
    return std::ranges::find(kPlain, code) != std::end(kPlain);
}

std::string_view why_refused(std::string_view code) {
    if (code == "O")
        return "holds pointers to objects, which mean nothing to another process; send what "
               "pickle.dumps() makes of them";
    if (code.starts_with("T{"))
        return "has fields; send each by itself, or all of them as bytes, x.view('u1')";
    return "has elements of a type that PCCL does not support; send them as bytes";
}

}  // namespace

std::optional<DataType> type_of_number(int number) {
    using pybind11::detail::npy_api;
    switch (number) {
        case npy_api::NPY_BOOL_:
            return DataType::kBool;
        case kNumpyHalf:
            return DataType::kFloat16;
        case npy_api::NPY_FLOAT_:
            return DataType::kFloat32;
        case npy_api::NPY_DOUBLE_:
            return DataType::kFloat64;
        case npy_api::NPY_CFLOAT_:
            return DataType::kComplex64;
        case npy_api::NPY_CDOUBLE_:
            return DataType::kComplex128;
        case npy_api::NPY_BYTE_:
        case npy_api::NPY_SHORT_:
            return signed_type(number == npy_api::NPY_BYTE_ ? 1 : 2);
        case npy_api::NPY_UBYTE_:
        case npy_api::NPY_USHORT_:
            return unsigned_type(number == npy_api::NPY_UBYTE_ ? 1 : 2);
        case npy_api::NPY_INT_:
            return signed_type(sizeof(int));
        case npy_api::NPY_UINT_:
            return unsigned_type(sizeof(unsigned));
        case npy_api::NPY_LONG_:
        case npy_api::NPY_LONGLONG_:
            return signed_type(number == npy_api::NPY_LONG_ ? sizeof(long) : sizeof(long long));
        case npy_api::NPY_ULONG_:
        case npy_api::NPY_ULONGLONG_:
            return unsigned_type(number == npy_api::NPY_ULONG_ ? sizeof(long) : sizeof(long long));
        default:
            return std::nullopt;
    }
}

std::optional<DataType> type_of_kind(char kind, std::size_t bytes) {
    switch (kind) {
        case 'b':
            return bytes == 1 ? std::optional(DataType::kBool) : std::nullopt;
        case 'i':
            return signed_type(bytes);
        case 'u':
            return unsigned_type(bytes);
        case 'f':
            return float_type(bytes);
        case 'c':
            return complex_type(bytes);
        default:
            return std::nullopt;
    }
}

std::optional<DataType> type_of_extension(std::string_view name) {
    if (name == "bfloat16") return DataType::kBfloat16;
    if (name == "float8_e4m3fn") return DataType::kFloat8E4m3;
    if (name == "float8_e5m2") return DataType::kFloat8E5m2;
    return std::nullopt;
}

// Accepts the codes of the struct module and numpy's extensions.
Result<DataType> type_of_format(const char* format, std::size_t item_bytes) {
    std::string_view code = format == nullptr ? "B" : format;
    if (code.starts_with('>') || code.starts_with('!'))
        return Status::invalid_argument(
            "is not in this machine's byte order; send x.astype(x.dtype.newbyteorder('='))");
    if (code.starts_with('@') || code.starts_with('=') || code.starts_with('<'))
        code.remove_prefix(1);
    if (code == "Zf" && item_bytes == 8) return DataType::kComplex64;
    if (code == "Zd" && item_bytes == 16) return DataType::kComplex128;
    if (is_number(code)) {
        if (const auto type = type_of_code(code.front(), item_bytes)) return *type;
        return contradiction(code, item_bytes);
    }
    if (is_plain(code)) return DataType::kBytes;
    return Status::invalid_argument(std::string(why_refused(code)));
}

}  // namespace pccl::bindings
