#include "csrc/costs/measure_tcp.h"

#include <array>
#include <span>
#include <vector>

#include "csrc/base/unique_fd.h"
#include "csrc/costs/samples.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::costs {
namespace {

constexpr Duration kPatience = std::chrono::milliseconds(100);
constexpr std::size_t kMessage = 64;
constexpr std::size_t kStream = 256 * kKiB;
constexpr int kTcpTurns = 3;

struct Pair {
    UniqueFd here;
    UniqueFd there;
};

Result<Pair> connect_pair() {
    PCCL_ASSIGN_OR_RETURN(const sys::Address any, sys::Address::from_ip("127.0.0.1", 0));
    PCCL_ASSIGN_OR_RETURN(const UniqueFd listener, sys::listen_on(any));
    PCCL_ASSIGN_OR_RETURN(const sys::Address address, sys::local_address(listener.get()));
    Pair pair;
    PCCL_ASSIGN_OR_RETURN(pair.here, sys::connect_to(address, Deadline::after(kPatience)));
    const sys::Interest connection{.fd = listener.get(), .input = true};
    static_cast<void>(sys::wait_for_any({&connection, 1}, kPatience));
    PCCL_ASSIGN_OR_RETURN(auto accepted, sys::accept_next(listener.get()));
    if (!accepted) return Status::unavailable("nobody connects on loopback");
    pair.there = *std::move(accepted);
    return pair;
}

/// Looks for it again and again, as ranks do before they sleep.
Status receive_message(int fd, std::span<std::byte> into, Deadline patience) {
    while (!into.empty()) {
        PCCL_ASSIGN_OR_RETURN(const std::size_t count, sys::receive_some(fd, into));
        into = into.subspan(count);
        if (count == 0 && patience.passed()) return Status::timeout("nothing came");
    }
    return Status::ok();
}

/// Messages go there and back; `sends` is what the calls that send take of that.
Status exchange(Partner& partner, const Pair& pair, Samples& rounds, Samples& sends) {
    constexpr int kRounds = 8;
    const Deadline patience = Deadline::after(kPatience);
    const Partner::Task answer = [&] {
        std::array<std::byte, kMessage> message{};
        for (int round = 0; round < kRounds; ++round)
            if (!receive_message(pair.there.get(), message, patience).is_ok() ||
                !sys::send_all(pair.there.get(), message, patience).is_ok())
                return;
    };
    partner.begin(answer);
    std::array<std::byte, kMessage> message{};
    Status status;
    for (int round = 0; round < kRounds && status.is_ok(); ++round) {
        const TimePoint begun = system_clock().now();
        status = sys::send_all(pair.here.get(), message, patience);
        const TimePoint sent = system_clock().now();
        if (status.is_ok()) status = receive_message(pair.here.get(), message, patience);
        sends.add(seconds_between(begun, sent));
        rounds.add(seconds_between(begun, system_clock().now()));
    }
    partner.end();
    return status;
}

Status stream(Partner& partner, const Pair& pair, std::vector<std::byte>& bytes, Samples& into) {
    const Deadline patience = Deadline::after(kPatience);
    std::vector<std::byte> received(kStream);
    Status heard;
    const Partner::Task answer = [&] {
        heard = sys::receive_all(pair.there.get(), received, patience);
    };
    partner.begin(answer);
    Status status;
    const double seconds = seconds_of([&] {
        status = sys::send_all(pair.here.get(), bytes, patience);
        partner.end();
    });
    PCCL_TRY(status);
    PCCL_TRY(heard);
    into.add(seconds);
    return Status::ok();
}

}  // namespace

Status measure_tcp(Partner& partner, MachineCosts& into, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const Pair pair, connect_pair());
    Samples rounds;
    Samples sends;
    Samples streams;
    std::vector<std::byte> bytes(kStream);
    for (int turn = 0; turn < kTcpTurns && !deadline.passed(); ++turn) {
        PCCL_TRY(exchange(partner, pair, rounds, sends));
        PCCL_TRY(stream(partner, pair, bytes, streams));
    }
    if (rounds.is_empty()) return Status::unavailable("no time was left");
    into.tcp_round = rounds.quartile_of(2);
    into.tcp_message = sends.quartile_of();
    into.tcp_byte = streams.quartile_of(static_cast<double>(kStream));
    return Status::ok();
}

}  // namespace pccl::costs
