// SPDX-License-Identifier: Apache-2.0

// PCCL_API marks the few symbols that libpccl.so exports to the extension modules and to C++ users.
// All code is compiled with hidden visibility; a type or function without the mark is private.
#pragma once

#define PCCL_API [[gnu::visibility("default")]]
