// SPDX-License-Identifier: Apache-2.0

// Bindings of the library's own rendezvous store, for directories of sessions and for launchers.

#include <pybind11/stl.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pccl/store.h>
#include "csrc/base/config.h"
#include "csrc/base/threads/interruptible.h"
#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/seconds.h"
#include "csrc/bootstrap/published_store.h"
#include "csrc/extension/gil.h"
#include "csrc/extension/signals.h"

namespace pccl::bindings {

namespace py = pybind11;
using py::arg;

namespace {

/// Thread-safe wrapper of a store, which is not.
class SharedStore {
   public:
    explicit SharedStore(std::shared_ptr<Store> store) : store_(std::move(store)) {}

    Status set(const std::string& key, const std::string& value) {
        const std::lock_guard lock(mutex_);
        return store_->set(key, value);
    }
    /// Returns nullopt immediately where there is no such key.
    Result<std::optional<std::string>> look_up(const std::string& key) {
        const std::lock_guard lock(mutex_);
        auto value = store_->get(key, Deadline::after(Duration::zero()));
        if (value.is_ok()) return std::optional(std::move(*value));
        if (value.status().code() == StatusCode::kTimeout) return std::optional<std::string>();
        return value.status();
    }
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) {
        const std::lock_guard lock(mutex_);
        return store_->add(key, delta);
    }
    Status remove(const std::string& key) {
        const std::lock_guard lock(mutex_);
        return store_->remove(key);
    }
    [[nodiscard]] std::string server() const { return store_->server(); }

   private:
    std::mutex mutex_;
    const std::shared_ptr<Store> store_;
};

template <typename Open>
std::unique_ptr<SharedStore> open_before(Seconds timeout, Open open) {
    throw_unless_ok(check_settings());
    const Deadline deadline = deadline_after(timeout);
    const auto attempt = [&](const Cancellation& cancellation) {
        return open(deadline.unless(cancellation.is_set()));
    };
    return std::make_unique<SharedStore>(released(
        [&] { return run_interruptibly("pccl-store-open", extension::check_signals, attempt); }));
}

/// Opens a store that two processes share; rank 0 creates or serves it.
std::unique_ptr<SharedStore> open_shared(const std::string& url, bool hosts, Seconds timeout) {
    return open_before(
        timeout, [&](Deadline deadline) { return open_store(url, hosts ? 0 : 1, 2, deadline); });
}

std::unique_ptr<SharedStore> join_published(const std::vector<std::string>& addresses,
                                            const py::bytes& secret, Seconds timeout) {
    const std::string bytes = secret;
    return open_before(timeout, [&](Deadline deadline) {
        return bootstrap::join_published_store(addresses, bytes, deadline);
    });
}

std::optional<py::bytes> look_up(SharedStore& store, const std::string& key) {
    const auto value = released([&] { return store.look_up(key); });
    return value ? std::optional(py::bytes(*value)) : std::nullopt;
}

std::unique_ptr<bootstrap::PublishedStore> serve(const py::bytes& secret) {
    throw_unless_ok(check_settings());
    const std::string bytes = secret;
    return released([&] { return bootstrap::PublishedStore::serve(bytes); });
}

void throw_unless_done(const std::function<Status()>& call) {
    throw_unless_ok([&] {
        const extension::ReleasedGil released;
        return call();
    }());
}

}  // namespace

void bind_store(extension::Module& module) {
    extension::Class<SharedStore>(module, "_RendezvousStore")
        .def_init(&open_shared, arg("url"), arg("hosts"), arg("timeout"))
        .def_static("join_published", &join_published, arg("addresses"), arg("secret"),
                    arg("timeout"))
        .def_property_readonly("server", &SharedStore::server)
        .def(
            "set",
            [](SharedStore& self, const std::string& key, const py::bytes& value) {
                const std::string bytes = value;
                throw_unless_done([&] { return self.set(key, bytes); });
            },
            arg("key"), arg("value"))
        .def("look_up", &look_up, arg("key"))
        .def(
            "add",
            [](SharedStore& self, const std::string& key, std::int64_t delta) {
                return released([&] { return self.add(key, delta); });
            },
            arg("key"), arg("delta"))
        .def(
            "remove",
            [](SharedStore& self, const std::string& key) {
                throw_unless_done([&] { return self.remove(key); });
            },
            arg("key"));
    extension::Class<bootstrap::PublishedStore>(module, "_PublishedStore")
        .def_init(&serve, arg("secret"))
        .def_property_readonly("addresses", &bootstrap::PublishedStore::addresses);
}

}  // namespace pccl::bindings
