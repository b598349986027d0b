// SPDX-License-Identifier: Apache-2.0

// Visibility of symbols.
#pragma once

/// Marks the symbols that libpccl.so exports. All code is compiled with hidden visibility; a type
/// or function without the mark is private to the library.
#define PCCL_API [[gnu::visibility("default")]]
