// SPDX-License-Identifier: Apache-2.0

// Adaptor from torch's rendezvous store to the communicator's.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <memory>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <pccl/store.h>

namespace pccl::backend {

/// Returns the adaptor. Exceptions of torch's store become a Status. A get polls instead of waiting
/// inside torch's client: that would block other users of the same store object, and it logs every
/// wait that times out.
[[nodiscard]] std::shared_ptr<Store> adapt_store(c10::intrusive_ptr<c10d::Store> store);

}  // namespace pccl::backend
