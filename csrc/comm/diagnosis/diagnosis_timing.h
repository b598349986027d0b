// SPDX-License-Identifier: Apache-2.0

// Durations of the stages from a stalled operation to the end of its group.
//
//   running --still 10 ms--> looking --still 300 ms--> asking --its deadline--> graph walk
//      ^                        |                         |                        |
//      |<--- something moved ---+-------------------------+                        |
//                               | a peer is gone          | its answer: it cannot  | the rank
//                               |                         | continue               | to blame
//                               v                         v                        v
//   a peer sends its close reason, ---------------> reconsidered ----------------> over
//   or an operation fails
//
// - looking: links and the segment are checked for lost ranks among the awaited ones, every 20 ms.
// - asking: a few of the awaited ranks receive a status request, every 500 ms.
// - graph walk: the awaited ranks receive a request, then the ranks that these wait for, until the
//   chain ends.
// - reconsidered: a rank that has left receives one request for its reason; its close reason may
//   still be in flight.
// - over: operations have ended with one reason, the first. Ranks that no link or segment notifies
//   are then notified, and the flight record is written.
//
// Before a finding ends a group, its operations make progress once more: data that a rank sent
// before it left still counts.
#pragma once

#include <chrono>

#include <pccl/deadline.h>

namespace pccl::comm {

struct DiagnosisTiming {
    Duration look_after = std::chrono::milliseconds(10);  // since the last progress
    Duration look_every = std::chrono::milliseconds(20);
    Duration query_after = std::chrono::milliseconds(300);  // since the last progress
    Duration query_every = std::chrono::milliseconds(500);  // plus, in large groups:
    Duration query_every_per_rank = std::chrono::milliseconds(10);
    Duration glance = std::chrono::milliseconds(200);  // for an answer, while there is time
    Duration query_again_after = std::chrono::milliseconds(20);  // after an incomplete answer
    Duration answer_timeout = std::chrono::milliseconds(600);    // for one answer in a graph walk
    Duration graph_walk = std::chrono::milliseconds(1500);       // for the whole walk
    Duration second_opinion = std::chrono::milliseconds(100);    // for a rank that has left
    Duration last_words = std::chrono::milliseconds(300);     // for the arrival of a close reason
    Duration notification = std::chrono::milliseconds(1000);  // for notifying others at the end
    Duration notification_of_one = std::chrono::milliseconds(300);
};

}  // namespace pccl::comm
