// SPDX-License-Identifier: Apache-2.0

// Streams whose events order transfers.
#pragma once

#include <pccl/transfer.h>

namespace pccl::p2p {

/// Returns kUnsupported where this process has no CUDA, and while the stream is being captured.
[[nodiscard]] Status check_stream(const Stream& stream);

}  // namespace pccl::p2p
