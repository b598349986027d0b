// What a rank leaves in the store before it knows its group: where its process is, or why it cannot
// join. And whose end counts: stores outlive processes.
//
// A process that has announced itself and ended is lost to a rank that joins beside it, and nothing
// at all to one of a later attempt at the job, which finds the same entry. The store does not tell
// them apart, so `Contemporaries` does: an end counts if the process was alive while this rank
// joined (it was seen alive, or its entry came after the first look), or if its entry is younger
// than this process. The last rule holds wherever the processes of one attempt have ended before
// those of the next are started; between machines it takes clocks that differ by less than a
// second. An end that does not count costs time alone: the rank is then waited for until the
// deadline.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "csrc/bootstrap/endpoint.h"
#include "csrc/bootstrap/rendezvous/store.h"

namespace pccl::bootstrap {

struct PCCL_API Announcement {
    Endpoint endpoint;       // its nonce tells announcements of one rank apart
    std::int64_t at_ms = 0;  // by the wall clock of its host
    Status failure{};        // why the rank cannot join; ok while it is on its way

    [[nodiscard]] std::string serialise() const;
    /// From bytes of any origin: kInvalidArgument names the place.
    static Result<Announcement> deserialise(std::string_view bytes);
};

/// Of now, with a nonce of its own.
[[nodiscard]] Result<Announcement> announcement_of(Endpoint endpoint, Status failure = {});

/// Puts it where announced() finds it, in place of what an earlier process of that rank left.
[[nodiscard]] Status announce(Store& pre_join, const Announcement& own);
/// What `rank` has announced last; kTimeout where that is nothing, kInvalidArgument where it cannot
/// be read.
[[nodiscard]] Result<Announcement> announced(Store& pre_join, Rank rank);
/// The same, whether it proves the job's secret or not.
[[nodiscard]] Result<Announcement> unproven_announcement(Store& pre_join, Rank rank);
/// Takes the announcement of a rank that has joined back.
[[nodiscard]] Status withdraw(Store& pre_join, Rank rank);

/// Begins a new attempt of this process: what is in the stores now no longer counts to it.
PCCL_API void begin_attempt();

class PCCL_API Contemporaries {
   public:
    /// Of a rank on `machine`, which looks at announcements from now on; its attempt began with its
    /// process, or at the last begin_attempt().
    explicit Contemporaries(std::string machine);
    Contemporaries(std::string machine, std::int64_t since_ms)
        : machine_(std::move(machine)), since_ms_(since_ms) {}

    /// Notes the nonce that the store shows of `rank`; 0: none.
    void note(Rank rank, std::uint64_t nonce);
    void saw_alive(const Announcement& other);
    [[nodiscard]] bool counts(const Announcement& other) const;

   private:
    struct Seen {
        std::uint64_t first = 0;
        std::uint64_t alive = 0;
    };

    const std::string machine_;
    const std::int64_t since_ms_;
    std::map<Rank, Seen> seen_;
};

}  // namespace pccl::bootstrap
