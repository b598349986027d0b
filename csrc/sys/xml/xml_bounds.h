// SPDX-License-Identifier: Apache-2.0

// Bounds on the time and memory of an XML parser, checked in one pass before the parser gets the
// text.
//
// A parser compares every attribute of an element with all others, searches all namespace
// declarations in scope for each prefix, rereads unfinished markup with every block of bytes, and
// gives each element a copy of its namespace. A text far below the limit of bytes can therefore
// keep it busy for hours, in one call that no deadline ends.
#pragma once

#include <cstddef>
#include <string_view>

#include <pccl/export.h>
#include <pccl/status.h>

namespace pccl::sys {

struct XmlReaderLimits {
    std::size_t bytes = std::size_t{16} << 20U;
    std::size_t elements = std::size_t{1} << 18U;
    std::size_t others = std::size_t{1} << 18U;  // comments, instructions, CDATA sections
    std::size_t depth = 64;
    std::size_t attributes = std::size_t{1} << 18U;  // of all elements, with declarations
    std::size_t attributes_of_one = 256;             // of one element, with declarations
    std::size_t declarations = 1024;                 // of namespaces, in scope at one element
    std::size_t name = 256;                          // bytes of a name, or of a namespace
    std::size_t ids = 1024;                          // attributes xml:id
    /// Bytes of a tag, a comment or a processing instruction.
    std::size_t markup = std::size_t{1} << 14U;
    /// Bytes that are compared while prefixes of elements and attributes are searched among the
    /// declarations in scope.
    std::size_t lookups = std::size_t{1} << 29U;
};

/// Returns kInvalidArgument, with the line, where `text` exceeds a limit, has a document type
/// declaration, or a tag or reference that is not well-formed. Takes linear time.
[[nodiscard]] PCCL_API Status check_xml_bounds(std::string_view text,
                                               const XmlReaderLimits& limits);

}  // namespace pccl::sys
