// A job as the entries of the P4 program's tables, whatever the target writes them in, and which
// registers, groups and counters each of a switch's jobs has been given.
//
//   sources     (port, source address, set and slot) -> worker: its mark, its registers
//                                                    -> upper: the switch above; its packets are
//                                                       results
//   groups      lists of receivers: of what all workers of a job have sent, of what came from
//               above, and one for each worker (repeated results). A result goes to the group with
//               the number of the row that it was counted in; a repeated one to its worker's
//
// There is an entry for each set of every slot: exact matches are what every target has and does
// fast.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "switch/plan.h"

namespace ghostrank::switchml {

// Sizes of the program's tables and registers (p4/headers.p4, p4/source.p4, p4/pna_dpdk.p4).
inline constexpr std::size_t kMostSources = 131072;
inline constexpr int kMostJobs = 256, kMostGroups = 8191;  // groups: of single workers

// The program counts in rows: for a port malformed, strangers, lost, unknown; for a job collected,
// duplicates, broadcasts, retransmissions, results, sent (counters.h says what they are).
inline constexpr int kPortCounterRow = 4, kJobCounterRow = 8;
inline constexpr int kBroadcasts = 2, kFromAbove = 4, kCopies = 5;  // in a row of a job
inline constexpr int kFirstOwnGroup = kMostJobs * kJobCounterRow;   // behind all rows

struct Receiver {
  int port = 0;
  Mac mac{};
  std::uint32_t ip = 0;
  std::uint16_t udp = 0;  // plus the low four bits of the switch's port
};

struct Tables {
  struct Group {
    std::uint32_t number = 0;  // over 0, under 65535
    std::vector<Receiver> receivers;
  };
  struct Source {
    int port = 0;
    std::uint32_t ip = 0;
    int index = 0;  // in packets: set in bit 15, slot below
    bool upper = false;
    int worker = 0, workers = 0;       // of a worker
    std::uint32_t row = 0, other = 0;  // of registers: of this set, of the slot's other set
    std::uint32_t again = 0;           // the group that gets a repeated result
  };
  int job = 0;  // number of the job
  int row() const { return job * kJobCounterRow; }
  int elements = 256;
  std::vector<Group> groups;
  std::vector<Source> sources;
};

// What a job has been given.
struct Placement {
  int job = 0;          // 0 .. kMostJobs - 1
  int first_slot = 0;   // of the registers
  int first_group = 1;  // of as many as the job needs
};

Tables tables_of(const JobPlan& job, const Placement& place);

// Who has what in a program for so many elements and slots.
class Allocation {
 public:
  Allocation(int elements, int slots) : elements_(elements), slots_(slots) {}

  // Room for a job, remembered under its name. Throws std::invalid_argument where the program
  // cannot hold it: another number of elements, or no slots, sources, groups or counters left.
  Placement admit(const JobPlan& job);
  void remove(const std::string& job) { admitted_.erase(job); }

 private:
  struct Admitted {
    JobPlan job;
    Placement place;
  };

  int elements_, slots_;
  std::map<std::string, Admitted> admitted_;
};

}  // namespace ghostrank::switchml
