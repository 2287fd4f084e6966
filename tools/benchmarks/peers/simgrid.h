// Shared by the benchmarks and the test that compare the modelled networks with SimGrid. SimGrid
// allows one engine per process, so every play runs in a child process.
//
// Threading: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <simgrid/s4u.hpp>
#include <vector>

namespace ghostrank::bench {

constexpr double kBitsPerSecond = 100e9;  // of every link between a host and its switch

struct Played {
  double cpu_seconds = 0;        // of playing alone, the last time
  std::vector<double> ends;      // seconds, of each transfer, or of the whole
  double whole_cpu_seconds = 0;  // of random transfers: from their list to `ends`
};

// SimGrid's engine without what models the WAN.
std::unique_ptr<simgrid::s4u::Engine> make_engine();

// ---- Random transfers over a contended fat tree (simgrid_transfers.cpp) ----

constexpr int kTransfersEach = 8;  // that a host sends

// Each play the transfers so many times, one time after the other. The first time paths are found,
// and what else is made when a call first comes.
Played play_transfers_as_flows(int hosts, int times);
Played play_transfers_in_simgrid(int hosts, int times);

// How far the durations of the transfers are apart, as a share of SimGrid's.
struct Apart {
  double worst = 0, mean = 0;
};
Apart transfers_apart(int hosts);

// ---- A ring all-reduce, message by message (simgrid_ring.cpp) ----

constexpr std::uint64_t kChunk = 1 << 20;  // bytes of a message
constexpr double ring_messages(double ranks) { return 2 * ranks * (ranks - 1); }

Played play_ring_by_loggp(int ranks);
// An actor a rank, which sends and receives in a loop: the shortest program for SimGrid.
Played play_ring_by_actors(int ranks);
// SMPI's MPI_Allreduce with its ring, `smpi/allreduce:lr`, which does not touch payload.
Played play_ring_by_smpi(int ranks);
// How far the duration of `play`'s ring is from that of `loggp`, as a share; each in a child
// process. Empty: one did not end well.
std::optional<double> ring_apart(int ranks, Played (*play)(int ranks));

}  // namespace ghostrank::bench
