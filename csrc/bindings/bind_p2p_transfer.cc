// SPDX-License-Identifier: Apache-2.0

// Bindings of windowed transfers, for pccl.p2p.

#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <pccl/transfer.h>
#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/fork_bound_class.h"
#include "csrc/bindings/p2p_waits.h"
#include "csrc/bindings/seconds.h"
#include "csrc/extension/gil.h"

namespace pccl::bindings {

namespace py = pybind11;
using p2p::LocalExtent;
using p2p::LocalMemory;
using p2p::Message;
using p2p::RemoteExtent;
using p2p::RemoteMemory;
using p2p::Transfer;
using p2p::Work;
using py::arg;

namespace {

using PostMethod = Result<Message> (Transfer::*)(const LocalExtent&, std::uint64_t, Deadline);

template <PostMethod Post>
Message post_message(Transfer& transfer, const std::shared_ptr<LocalMemory>& memory,
                     std::uint64_t offset, std::uint64_t nbytes, std::uint64_t tag,
                     OptionalSeconds timeout) {
    const LocalExtent block{memory, {offset, nbytes}};
    std::optional<Message> posted;
    const auto try_until = [&](Deadline deadline) {
        auto message = (transfer.*Post)(block, tag, deadline);
        if (message.is_ok()) posted = *message;
        return message.status();
    };
    wait_for_signals_too(timeout, try_until, &unless_timeout, transfer.peer());
    return *posted;
}

using PostOneSided = Result<Work> (Transfer::*)(const LocalExtent&, const RemoteExtent&, Deadline,
                                                std::span<const std::byte>);

template <PostOneSided Post>
Work post_one_sided(Transfer& transfer,
                    const std::pair<std::shared_ptr<LocalMemory>, std::uint64_t>& local,
                    const std::pair<RemoteMemory, std::uint64_t>& remote, std::uint64_t nbytes,
                    std::string_view notify, OptionalSeconds timeout) {
    const LocalExtent here{local.first, {local.second, nbytes}};
    const RemoteExtent there{remote.first, {remote.second, nbytes}};
    std::optional<Work> posted;
    const auto try_until = [&](Deadline deadline) {
        auto work = (transfer.*Post)(here, there, deadline, std::as_bytes(std::span(notify)));
        if (work.is_ok()) posted = *work;
        return work.status();
    };
    wait_for_signals_too(timeout, try_until, &unless_timeout, transfer.peer());
    return *posted;
}

bool is_message_done(const Message& message) {
    if (!message.is_complete()) return false;
    throw_unless_ok(message.status(), message.peer().name);
    return true;
}

void wait_for_all(Transfer& transfer, OptionalSeconds timeout) {
    wait_for_signals_too(
        timeout, [&](Deadline deadline) { return transfer.await_end(deadline); }, &unless_timeout,
        transfer.peer());
    throw_unless_ok(transfer.take_error(), transfer.peer());
}

}  // namespace

void bind_p2p_transfer(extension::Module& module) {
    ForkBoundClass<Message> message(module, "_P2pMessage");
    message.anywhere()
        .def_property_readonly("tag", &Message::tag)
        .def("__str__", &Message::to_string)
        .def("release", [](const Message& self) {
            const extension::ReleasedGil released;
            self.release();
        });
    message
        .def_property_readonly("nbytes",
                               [](const Message& self) {
                                   return self.is_complete() ? self.bytes() : std::uint64_t{0};
                               })
        .def_property_readonly("stage", [](const Message& self) { return to_string(self.stage()); })
        .def("done", &is_message_done)
        .def("wait", &wait_for_end<Message>, arg("timeout"));
    ForkBoundClass<Transfer>(module, "_P2pTransfer")
        .def("post_send", &post_message<&Transfer::post_send>, arg("memory"), arg("offset"),
             arg("nbytes"), arg("tag"), arg("timeout"))
        .def("post_recv", &post_message<&Transfer::post_recv>, arg("memory"), arg("offset"),
             arg("nbytes"), arg("tag"), arg("timeout"))
        .def("post_read", &post_one_sided<&Transfer::post_read>, arg("local"), arg("remote"),
             arg("nbytes"), arg("notify"), arg("timeout"))
        .def("post_write", &post_one_sided<&Transfer::post_write>, arg("local"), arg("remote"),
             arg("nbytes"), arg("notify"), arg("timeout"))
        .def("is_complete", &Transfer::is_complete)
        .def("wait", &wait_for_all, arg("timeout"))
        .anywhere()
        .def("release", [](Transfer& self) {
            const extension::ReleasedGil released;
            self.release();
        });
}

}  // namespace pccl::bindings
