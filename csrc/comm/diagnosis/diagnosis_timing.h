// How long each stage takes on the way from an operation that stands still to the end of its group.
//
//   running --still 10 ms--> looking --still 300 ms--> asking --its deadline--> graph walk
//      ^                        |                         |                        |
//      |<--- something moved ---+-------------------------+                        |
//                               | a peer is gone          | it says why it cannot  | who is to
//                               |                         | go on                  | blame
//                               v                         v                        v
//   a peer tells why it has left, ----------------> reconsidered ----------------> over
//   or an operation runs into an error
//
// looking:      what links and the segment show of the ranks that are waited for, every 20 ms.
// asking:       a few of those ranks say themselves how they fare, every 500 ms.
// graph walk:   whoever is waited for is asked, then whom these wait for, until the chain ends.
// reconsidered: once, a rank that has left is asked why; its last words may still be on their way.
// over:         operations have ended with one reason, the first; then ranks are told that no link
//               or segment tells, and the flight record is written.
//
// Before a finding ends a group, its operations are advanced once more: what a rank did before it
// left still counts.
#pragma once

#include <chrono>

#include "csrc/base/clock.h"

namespace pccl::comm {

struct DiagnosisTiming {
    Duration look_after = std::chrono::milliseconds(10);  // since something has moved
    Duration look_every = std::chrono::milliseconds(20);
    Duration ask_after = std::chrono::milliseconds(300);  // since something has moved
    Duration ask_every = std::chrono::milliseconds(500);  // and more in large groups:
    Duration ask_every_per_rank = std::chrono::milliseconds(10);
    Duration glance = std::chrono::milliseconds(200);          // for an answer, while there is time
    Duration ask_again_after = std::chrono::milliseconds(20);  // where an answer was not whole
    Duration answer_timeout = std::chrono::milliseconds(600);  // for an answer in a graph walk
    Duration graph_walk = std::chrono::milliseconds(1500);     // for all of them
    Duration second_opinion = std::chrono::milliseconds(100);  // for a rank that has left
    Duration last_words = std::chrono::milliseconds(300);      // until they arrive
    Duration telling = std::chrono::milliseconds(1000);        // others, once the group is over
    Duration telling_one = std::chrono::milliseconds(300);
};

}  // namespace pccl::comm
