// SPDX-License-Identifier: Apache-2.0
#include "csrc/costs/measure_tcp.h"

#include <span>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/unique_fd.h"
#include "csrc/costs/timing_samples.h"
#include "csrc/sys/socket/echo.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::costs {
namespace {

constexpr Duration kAnswerTimeout = std::chrono::milliseconds(100);
constexpr std::size_t kFirstStream = 16 * kKiB;
constexpr std::size_t kLastStream = 256 * kKiB;
// A stream of this duration is long enough to derive the time of its bytes.
constexpr double kLongStream = 1e-3;
// A median above this multiple of the minimum means that other processes used the cores meanwhile.
constexpr double kSteadySpread = 2;
constexpr int kTcpTurns = 3;
constexpr int kEchoes = 8;

struct Pair {
    UniqueFd here;
    UniqueFd there;
};

Result<Pair> connect_pair() {
    PCCL_ASSIGN_OR_RETURN(const sys::Address any, sys::Address::from_ip("127.0.0.1", 0));
    PCCL_ASSIGN_OR_RETURN(const UniqueFd listener, sys::listen_on(any));
    PCCL_ASSIGN_OR_RETURN(const sys::Address address, sys::local_address(listener.get()));
    Pair pair;
    PCCL_ASSIGN_OR_RETURN(pair.here, sys::connect_to(address, Deadline::after(kAnswerTimeout)));
    const sys::Interest connection{.fd = listener.get(), .input = true};
    static_cast<void>(sys::wait_for_any({&connection, 1}, kAnswerTimeout));
    PCCL_ASSIGN_OR_RETURN(auto accepted, sys::accept_next(listener.get()));
    if (!accepted) return Status::unavailable("nobody connects on loopback");
    pair.there = *std::move(accepted);
    return pair;
}

/// Measurement of one connection whose other end answers.
class Measurement {
   public:
    Measurement(int fd, Deadline deadline) : fd_(fd), deadline_(deadline), bytes_(kLastStream) {}

    /// Waits for the first answer, because the other end may be busy at first.
    Status await_other_end() { return exchange_echo(0).status(); }

    /// Finds a stream size that is sufficient for the time of a byte; the window of the connection
    /// grows meanwhile.
    Status find_stream() {
        for (std::size_t bytes = kFirstStream; bytes <= kLastStream; bytes *= 4) {
            stream_ = bytes;
            streams_ = {};
            PCCL_TRY(add_stream());
            // It may have been disturbed, or the network's burst allowance is used up only now.
            if (streams_.least() >= kLongStream) PCCL_TRY(add_stream());
            if (streams_.least() >= kLongStream) break;
        }
        return Status::ok();
    }

    Status add_echoes() {
        for (int i = 0; i < kEchoes; ++i) {
            PCCL_ASSIGN_OR_RETURN(const sys::Echo echo, exchange_echo(0));
            rounds_.add(echo.answered);
            sends_.add(echo.sent);
        }
        return Status::ok();
    }

    Status turn() {
        PCCL_TRY(add_echoes());
        return add_stream();
    }

    /// Returns the costs. The time of a byte is that of a stream, less an echo without data.
    [[nodiscard]] TcpCosts costs() const {
        return {.round = rounds_.quartile_of(2),
                .message = sends_.quartile_of(),
                .byte = streams_.quartile_of(static_cast<double>(stream_), rounds_.quartile()),
                .is_steady = rounds_.spread() < kSteadySpread && streams_.agree(kSteadySpread)};
    }

   private:
    Status add_stream() {
        PCCL_ASSIGN_OR_RETURN(const sys::Echo echo, exchange_echo(stream_));
        streams_.add(echo.answered);
        return Status::ok();
    }
    Result<sys::Echo> exchange_echo(std::size_t bytes) {
        return sys::request_echo(fd_, std::span(bytes_).first(bytes), deadline_);
    }

    int fd_;
    Deadline deadline_;
    std::vector<std::byte> bytes_;
    std::size_t stream_ = 0;
    TimingSamples rounds_;
    TimingSamples sends_;
    TimingSamples streams_;
};

}  // namespace

Result<TcpCosts> measure_connection(int fd, const MeasuringTime& time) {
    Measurement measurement(fd, time.deadline);
    PCCL_TRY(measurement.await_other_end());
    const Deadline enough = Deadline::after(time.budget);
    PCCL_TRY(measurement.add_echoes());
    PCCL_TRY(measurement.find_stream());
    for (int turn = 0; turn < kTcpTurns && !enough.passed(); ++turn)
        if (!measurement.turn().is_ok()) break;  // earlier samples suffice
    return measurement.costs();
}

Status measure_tcp(PingPongThread& peer_thread, MachineCosts& into, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(Pair pair, connect_pair());
    const PingPongThread::Task answer = [&] {
        static_cast<void>(sys::answer_echoes(pair.there.get(), Deadline::after(kAnswerTimeout)));
    };
    peer_thread.begin(answer);
    const Result<TcpCosts> found = measure_connection(
        pair.here.get(),
        {.budget = deadline.remaining(), .deadline = Deadline::after(kAnswerTimeout)});
    pair.here.reset();
    peer_thread.end();
    PCCL_TRY(found.status());
    into.tcp_round = found->round;
    into.tcp_message = found->message;
    if (found->byte.is_measured) into.tcp_byte = found->byte;
    return Status::ok();
}

}  // namespace pccl::costs
