// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/echo.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/cpu/relax.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::sys {
namespace {

using Message = std::array<std::byte, kEchoBytes>;

// Times to spin and to yield, as ranks do: most replies arrive soon, and the sender may be waiting
// for this core.
constexpr Duration kLooking = std::chrono::microseconds(20);
constexpr Duration kYielding = std::chrono::microseconds(100);

/// Receives by polling: first it spins, then it yields, then it sleeps.
Status receive_soon(int fd, std::span<std::byte> into, Deadline deadline) {
    TimePoint came = system_clock().now();
    while (!into.empty()) {
        // Checks the deadline also while bytes keep arriving.
        if (deadline.passed()) return Status::timeout("no echo arrived");
        PCCL_ASSIGN_OR_RETURN(const std::size_t count, receive_some(fd, into));
        into = into.subspan(count);
        const TimePoint now = system_clock().now();
        if (count > 0) came = now;
        const Interest more{.fd = fd, .input = true};
        if (now - came < kLooking)
            relax();
        else if (now - came < kYielding)
            ::sched_yield();
        else if (!wait_for_any({&more, 1}, deadline.remaining()))
            return Status::timeout("no echo arrived");
    }
    return Status::ok();
}

Status receive_and_drop(int fd, std::uint64_t bytes, std::vector<std::byte>& room,
                        Deadline deadline) {
    while (bytes > 0) {
        const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, room.size()));
        PCCL_TRY(receive_soon(fd, std::span(room).first(part), deadline));
        bytes -= part;
    }
    return Status::ok();
}

double seconds_since(TimePoint begun) {
    return std::chrono::duration<double>(system_clock().now() - begun).count();
}

}  // namespace

Result<Echo> request_echo(int fd, std::span<const std::byte> bytes, Deadline deadline) {
    Message message{};
    const std::uint64_t follow = bytes.size();
    std::memcpy(message.data(), &follow, sizeof follow);
    Echo echo;
    const TimePoint begun = system_clock().now();
    PCCL_TRY(send_all(fd, message, deadline));
    echo.sent = seconds_since(begun);
    PCCL_TRY(send_all(fd, bytes, deadline));
    PCCL_TRY(receive_soon(fd, message, deadline));
    echo.answered = seconds_since(begun);
    return echo;
}

Status answer_echoes(int fd, Deadline deadline) {
    std::vector<std::byte> room(256 * kKiB);
    for (;;) {
        Message message{};
        PCCL_TRY(receive_soon(fd, message, deadline));
        std::uint64_t follow = 0;
        std::memcpy(&follow, message.data(), sizeof follow);
        if (follow > kMostEchoed)
            return Status::invalid_argument(
                concat("an echo of ", follow, " bytes; at most ", kMostEchoed));
        PCCL_TRY(receive_and_drop(fd, follow, room, deadline));
        PCCL_TRY(send_all(fd, message, deadline));
    }
}

}  // namespace pccl::sys
