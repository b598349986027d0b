// A Python object as the communicator's rendezvous store.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>

#include "csrc/bootstrap/rendezvous/store.h"

namespace pccl::bindings {

/// Any object with set(key, value), get(key) and add(key, number), such as torch's stores;
/// wait(keys, timedelta), check(keys) and delete_key(key) are used where they exist. Without
/// wait(), get() must raise KeyError or return None while the key is missing; one that blocks holds
/// up whoever looks whether a rank has left. Takes the GIL for each call.
[[nodiscard]] std::shared_ptr<bootstrap::Store> adapt_store(pybind11::object store);

/// Which rank this process is, and of how many.
struct Place {
    Rank rank = 0;
    int world_size = 1;
};
/// What users have left out is the environment's where they meet at "env://", else one rank alone;
/// who gives nothing at all is refused where a launcher has started several processes.
[[nodiscard]] Place place_in(const pybind11::object& rendezvous, std::optional<Rank> rank,
                             std::optional<int> world_size);

/// What users give as rendezvous: "env://" (the store that the environment names, with a part for
/// groups of that name), a URL for open_store(), a store object, or None (null here). Where it may
/// hold nothing, the part of "env://" is for this group alone, by its number in this process and
/// attempt.
[[nodiscard]] std::shared_ptr<bootstrap::Store> store_at(const pybind11::object& rendezvous,
                                                         const Place& place,
                                                         const std::string& group,
                                                         Deadline deadline,
                                                         bootstrap::StoreContent content);

}  // namespace pccl::bindings
