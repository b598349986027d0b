// SPDX-License-Identifier: Apache-2.0

// Adaptor from a Python object to the communicator's rendezvous store.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>

#include <pccl/store.h>

namespace pccl::bindings {

/// Adapts any object with set(key, value), get(key) and add(key, number), such as torch's stores.
/// Uses check(keys), or else wait(keys, timedelta), and delete_key(key) where they exist. Without
/// both, get() must raise KeyError or return None while the key is missing; a blocking get() delays
/// the detection of ranks that have left. Takes the GIL for each call.
[[nodiscard]] std::shared_ptr<Store> adapt_store(pybind11::object store);

/// Rank of this process, and number of ranks.
struct RankAndSize {
    Rank rank = 0;
    int world_size = 1;
};
/// Place of this process, and the rendezvous at which the ranks of its job meet.
struct Meeting {
    RankAndSize place;
    pybind11::object rendezvous;  // for store_at()
};
/// Completes the arguments. Missing numbers are those of the launcher for "auto", of the
/// environment for "env://", and of a single rank otherwise. The result contains no "auto" where
/// the launcher is the environment, or the process is alone. Throws if all are missing and the
/// rendezvous is None, although a launcher has started several processes.
[[nodiscard]] Meeting meeting_of(const pybind11::object& rendezvous, std::optional<Rank> rank,
                                 std::optional<int> world_size);

/// Opens the user's rendezvous: "auto" or "env://" (the store of the launcher or the environment,
/// with a prefix for groups of that name), a URL for open_store(), a store object, or None (returns
/// null). Where the store must be empty, the prefix of the former two also contains the group's
/// number in this process and the attempt.
[[nodiscard]] std::shared_ptr<Store> store_at(const Meeting& meeting, const std::string& group,
                                              Deadline deadline, StoreContent content);

}  // namespace pccl::bindings
