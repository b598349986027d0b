// torch's rendezvous store as the communicator's.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <memory>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "csrc/bootstrap/rendezvous/store.h"

namespace pccl::backend {

/// What torch's store throws becomes a Status. A get looks again and again instead of waiting
/// inside torch's client, which other users of the same store object would then wait for, and which
/// logs every wait that times out.
[[nodiscard]] std::shared_ptr<bootstrap::Store> adapt_store(c10::intrusive_ptr<c10d::Store> store);

}  // namespace pccl::backend
