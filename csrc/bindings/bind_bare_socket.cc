// SPDX-License-Identifier: Apache-2.0

// A timed ping-pong over a bare socket, like time_posts() in bind_p2p.cc for sessions. `pccl p2p
// bench` prints it as a reference. Python connects the sockets, which block in the kernel.

#include <pybind11/stl.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/extension/gil.h"
#include "csrc/extension/signals.h"

namespace pccl::bindings {

namespace py = pybind11;

namespace {

/// Returns 0 at the end of the stream.
Result<std::size_t> take_some(int fd, std::span<std::byte> into) {
    for (;;) {
        const ssize_t got = ::recv(fd, into.data(), into.size(), 0);
        if (got >= 0) return static_cast<std::size_t>(got);
        if (errno != EINTR) return Status::unavailable("a bare socket brings nothing more");
        PCCL_TRY(extension::check_signals());
    }
}

Status give_all(int fd, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) return Status::unavailable("a bare socket takes no more");
        if (sent < 0) PCCL_TRY(extension::check_signals());
        if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
    return Status::ok();
}

Status round_trip(int fd, std::span<std::byte> word) {
    PCCL_TRY(give_all(fd, word));
    for (std::span<std::byte> rest = word; !rest.empty();) {
        PCCL_ASSIGN_OR_RETURN(const std::size_t got, take_some(fd, rest));
        if (got == 0) return Status::unavailable("the other end of a bare socket is closed");
        rest = rest.subspan(got);
    }
    return Status::ok();
}

void echo(int fd) {
    throw_unless_ok([&]() -> Status {
        const extension::ReleasedGil released;
        std::vector<std::byte> words(std::size_t{1} << 16);
        for (;;) {
            PCCL_ASSIGN_OR_RETURN(const std::size_t got, take_some(fd, words));
            if (got == 0) return Status::ok();
            PCCL_TRY(give_all(fd, std::span(words).first(got)));
        }
    }());
}

std::vector<double> time_round_trips(int fd, std::size_t nbytes, int rounds) {
    return released([&]() -> Result<std::vector<double>> {
        std::vector<std::byte> word(nbytes);
        std::vector<double> seconds;
        for (int round = 0; round < rounds; ++round) {
            const TimePoint begin = system_clock().now();
            PCCL_TRY(round_trip(fd, word));
            seconds.push_back(std::chrono::duration<double>(system_clock().now() - begin).count());
        }
        return seconds;
    });
}

}  // namespace

void bind_bare_socket(extension::Module& module) {
    module.def("_echo", &echo, py::arg("descriptor"));
    module.def("_time_round_trips", &time_round_trips, py::arg("descriptor"), py::arg("nbytes"),
               py::arg("rounds"));
}

}  // namespace pccl::bindings
