// The comparisons, one per file; the table in main.cpp names them.
//
// Units: seconds, bits per second. Threading: one thread; each comparison makes its lab.
#pragma once

#include "tests/fidelity/report.h"
#include "tests/lab/lab.h"

namespace ghostrank::fidelity {

struct Options {
  bool quick = false;    // for a look, not for the tables: one pair instead of three, small sizes
  int ranks = 0;         // only this number of ranks, for a look; 0: all (collectives, time)
  std::string row;       // only rows whose name has this, for a look; empty: all (auto, step-time)
  bool longer = false;   // `time`: every row takes ten minutes; `step-time`: all messages
  std::string pictures;  // folder for SVG
};

Findings compare_ddp(const Options& options);
Findings compare_gloo(const Options& options);
Findings compare_mpi(const Options& options);
Findings compare_dilations(const Options& options);
Findings measure_time(const Options& options);
Findings compare_trunk(const Options& options);
Findings compare_switch(const Options& options);
Findings search_dilations(const Options& options);
Findings try_trust(const Options& options);
Findings compare_step_times(const Options& options);  // needs no lab
Findings compare_networks(const Options& options);    // likewise

// A frame of 1,514 bytes carries 1,448 bytes of a TCP stream: the share of a shaped rate left for
// them.
inline constexpr double kGoodput = 1448.0 / 1514.0;
inline constexpr double kSlow = 200e6, kFast = 1e9;
inline constexpr int kBurst = 65536;       // bytes that an idle link passes at once
inline constexpr double kLatency_us = 50;  // of the lab, one way; a step has dozens of them

}  // namespace ghostrank::fidelity
