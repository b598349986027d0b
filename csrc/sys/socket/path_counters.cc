// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/path_counters.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>

namespace pccl::sys {
namespace {

/// The kernel's tcp_info (linux/tcp.h, which excludes the C library's header) up to the last field
/// that is read here. The kernel fills as much as it has.
struct KernelTcpInfo {
    ::tcp_info start;
    std::uint64_t pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
    std::uint32_t segs_out, segs_in, notsent_bytes, min_rtt, data_segs_in, data_segs_out;
    std::uint64_t delivery_rate, busy_time, rwnd_limited, sndbuf_limited;
    std::uint32_t delivered, delivered_ce;
    std::uint64_t bytes_sent, bytes_retrans;
};
static_assert(sizeof(::tcp_info) == 104, "the C library's tcp_info ends with tcpi_total_retrans");

/// Returns what the kernel fills in; zeros where it has nothing.
KernelTcpInfo tcp_info_of(int fd) {
    KernelTcpInfo info{};
    socklen_t size = sizeof info;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
    return info;
}

}  // namespace

PathCounters& operator+=(PathCounters& sum, const PathCounters& more) {
    sum.sent += more.sent;
    sum.resent += more.resent;
    sum.round_trip = std::max(sum.round_trip, more.round_trip);
    sum.busy = std::max(sum.busy, more.busy);
    return sum;
}

PathCounters path_counters(int fd) {
    const KernelTcpInfo info = tcp_info_of(fd);
    return {.sent = info.bytes_acked,
            .resent = info.bytes_retrans,
            .round_trip = std::chrono::microseconds(info.start.tcpi_rtt),
            .busy = std::chrono::microseconds(info.busy_time)};
}

PathAnswers path_answers(int fd) {
    const KernelTcpInfo info = tcp_info_of(fd);
    return {.acknowledged = info.bytes_acked,
            .has_in_flight = info.start.tcpi_unacked > 0,
            .unanswered = std::max<unsigned>(info.start.tcpi_retransmits, info.start.tcpi_probes),
            .round_trip = std::chrono::microseconds(info.start.tcpi_rtt)};
}

std::uint64_t delivery_rate(int fd) { return tcp_info_of(fd).delivery_rate; }

}  // namespace pccl::sys
