// A job as entries of the P4 program's tables, independent of how a target writes them, and the
// registers, groups and counters that each job of a switch has been given.
//
//   sources     (port, source address, set and slot) -> worker: its mark, its registers
//                                                    -> upper: the switch above; its packets are
//                                                       results, and kept in the same registers
//   groups      lists of receivers: for a complete round, for results from above, and one for each
//               worker (repeated results). A result goes to the group with the number of the row
//               that it was counted in; a repeated one goes to its worker's group
//
// Each set of each slot has an entry of its own, because every target supports exact matches and
// makes them fast.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "switch/plan.h"

namespace ghostrank::switchml {

// Sizes of the program's tables and registers (p4/headers.p4, p4/source.p4, p4/dpdk.p4).
inline constexpr std::size_t kMostSources = 131072;
inline constexpr int kMostJobs = 256, kMostGroups = 8191;  // kMostGroups: of single workers

// The program's counters are in rows. A port's row: malformed, strangers, lost, unknown. A job's
// row: collected, duplicates, broadcasts, retransmissions, results, sent. counters.h defines them.
inline constexpr int kPortCounterRow = 4, kJobCounterRow = 8;
inline constexpr int kBroadcasts = 2, kFromAbove = 4, kCopies = 5;   // indexes in a job's row
inline constexpr int kFirstOwnGroup = kMostJobs * kJobCounterRow;    // after all rows
inline constexpr std::uint32_t kGuarded = 0xffffffff;                // GUARDED in p4/headers.p4
inline constexpr std::uint32_t kOfLeaf = 0x10000;                    // OF_LEAF there
inline constexpr int kSparseIndex = 0x10000, kAloneIndex = 0x20000;  // SPARSE_INDEX ... there

// Receivers that are no workers (p4/headers.p4): leaves with several workers, from kSeveral on, and
// the switch above.
inline constexpr std::uint16_t kSeveral = 0x8000, kAbove = 0xffff;

struct Receiver {
  int port = 0;
  Mac mac{};
  std::uint32_t ip = 0;
  std::uint16_t udp = 0;     // plus the low four bits of the switch's port
  std::uint16_t number = 0;  // of the worker (JobPlan::numbers), kSeveral + w, or kAbove
};

struct Tables {
  struct Group {
    std::uint32_t number = 0;  // 1 .. 65534
    std::vector<Receiver> receivers;
  };
  struct Source {
    int port = 0;
    std::uint32_t ip = 0;
    // As in packets: set in bit 15, slot below. Plus kSparseIndex: of OmniReduce; plus kAloneIndex:
    // where one worker gives or takes the elements alone.
    int index = 0;
    bool upper = false;
    int worker = 0, workers = 0;  // this worker's number; how many the job has
    std::uint32_t row = 0;        // register index of this set
    std::uint32_t other = 0;      // of the slot's other set; kGuarded: of a guarded job
    // The worker's group, for repeated results. On a leaf plus kOfLeaf: once it has the answer.
    std::uint32_t again = 0;
  };
  int job = 0;  // number of the job
  int row() const { return job * kJobCounterRow; }
  std::size_t result_bytes = 0;  // of a result's frame
  std::vector<Group> groups;
  std::vector<Source> sources;
};

// The numbers that a job has been given.
struct JobResources {
  int job = 0;          // 0 .. kMostJobs - 1
  int first_slot = 0;   // in the registers
  int first_group = 1;  // the job uses as many groups as it needs from here
};

Tables tables_of(const JobPlan& job, const JobResources& resources);

// Which job has which numbers, in a program for `elements` elements and `slots` slots.
class Allocation {
 public:
  // `ours`: the program is ghostrank's; another has its tables, but maybe not all that it knows.
  Allocation(int elements, int slots, bool ours = false)
      : elements_(elements), slots_(slots), ours_(ours) {}

  // Gives a job its numbers and remembers them under its name. Throws std::invalid_argument if the
  // program cannot hold the job: it has another number of elements, needs what only ours knows, or
  // no slots, sources, groups or counters are left.
  JobResources admit(const JobPlan& job);
  void remove(const std::string& job) { admitted_.erase(job); }

 private:
  struct Admitted {
    JobPlan job;
    JobResources resources;
  };

  int elements_, slots_;
  bool ours_;
  std::map<std::string, Admitted> admitted_;
};

}  // namespace ghostrank::switchml
