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
/// Completes the arguments: missing values are those of the environment if the rendezvous is
/// "env://", and those of a single rank otherwise. Throws if all are missing although a launcher
/// has started several processes.
[[nodiscard]] RankAndSize place_in(const pybind11::object& rendezvous, std::optional<Rank> rank,
                                   std::optional<int> world_size);

/// Opens the user's rendezvous: "env://" (the store of the environment, with a prefix for groups of
/// that name), a URL for open_store(), a store object, or None (returns null). Where the store must
/// be empty, the prefix of "env://" also contains the group's number in this process and the
/// attempt.
[[nodiscard]] std::shared_ptr<Store> store_at(const pybind11::object& rendezvous,
                                              const RankAndSize& place, const std::string& group,
                                              Deadline deadline, StoreContent content);

}  // namespace pccl::bindings
