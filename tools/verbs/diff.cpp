// ghostrank diff: the ledger of a result against packet captures of a real run.
#include <cmath>
#include <cstdio>

#include <CLI/CLI.hpp>

#include "profiles/error.h"
#include "tools/compare/wire_diff.h"
#include "tools/report/files/output_files.h"
#include "tools/verbs.h"
#include "tools/watch/outcome.h"

namespace ghostrank {

int verb_diff(const Argv& argv) {
  std::string result_file, json, csv;
  std::vector<std::string> captures, hosts;
  std::vector<std::uint16_t> except;
  std::optional<double> iterations;
  double interval_s = 0.01;
  std::optional<double> within;
  CLI::App app(
      "Compare the payload bytes of a result, pair by pair of hosts, with packet captures of a "
      "real run of the same job. Captures are classic pcap files of Ethernet frames, whose headers "
      "suffice (tcpdump -s 128 -i DEVICE -w FILE); TCP and RoCEv2 are counted.",
      "ghostrank diff");
  app.add_option("result", result_file, "result of 'run --json'")
      ->required()
      ->type_name("RESULT.json");
  app.add_option("captures", captures,
                 "of one host, in one file or one after the other (tcpdump -C, -G), or of several")
      ->required()
      ->type_name("FILE.pcap");
  app.add_option(
         "--host", hosts,
         "addresses of a real host and the emulated nodes that it is; default: addresses in "
         "order are nodes in order")
      ->allow_extra_args(false)
      ->type_name("ADDRESS,...=NODES");
  app.add_option("--iterations", iterations, "in the capture; default: the number that fits best")
      ->check(real_between(1e-6, 1e9))
      ->type_name("N");
  app.add_option("--except-port", except, "leave out connections of this port, such as a store's")
      ->allow_extra_args(false)
      ->type_name("PORT");
  app.add_option("--within", within, "exit 1 if a pair differs by a larger share")
      ->check(real_between(0, 1e6))
      ->type_name("SHARE");
  app.add_option("--json", json, "the same as JSON; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  app.add_option("--csv", csv, "bytes of each pair over time: src,dst,start_s,bytes")
      ->type_name("FILE|-")
      ->group("Output");
  app.add_option("--interval", interval_s, "of --csv, in seconds")
      ->check(real_between(1e-6, 3600))
      ->capture_default_str()
      ->type_name("SECONDS")
      ->group("Output");
  app.footer(
      "Example:\n"
      "  tcpdump -i eth0 -s 128 -w n0.pcap 'tcp or udp port 4791' &\n"
      "  ghostrank run job.yaml -s fabric.kind=virtual --json job.json\n"
      "  ghostrank diff job.json n0.pcap --host 10.0.0.1=0 --host 10.0.0.2=1 --within 0.02\n\n"
      "Exit status: 0 ok; 1 a pair differs by more than --within; 2 usage, result or capture.");
  if (!parse(app, argv)) return 0;
  if (csv.empty() && app.count("--interval") > 0)
    throw Error("--interval is of --csv; add that, or leave it out");
  const StoredResult result = read_result(result_file);
  std::vector<WireHost> named;
  for (const std::string& host : hosts) named.push_back(parse_wire_host(host));
  WireCapture capture({except.begin(), except.end()},
                      static_cast<std::uint64_t>(std::llround(interval_s * 1e9)));
  capture.add(captures);
  check_outputs({{"--json", json}, {"--csv", csv}});
  const WireDiff diff = diff_wire(result, capture, std::move(named), iterations);

  const int unwritten = write_each(
      std::vector<TextFile>{{csv, [&] { return wire_over_time_csv(diff, interval_s); }},
                            {json, [&] { return wire_diff_json(diff, capture, result_file); }}});
  if (json != "-" && csv != "-") std::fputs(wire_diff_text(diff, capture).c_str(), stdout);
  if (within)
    for (const WireDiffRow& row : diff.rows)
      if (!(std::abs(diff.difference(row)) <= *within)) {
        std::fprintf(stderr, "ghostrank: %s to %s differs by more than %g of the ledger\n",
                     diff.hosts[row.source].name.c_str(), diff.hosts[row.target].name.c_str(),
                     *within);
        return unwritten != 0 ? unwritten : 1;
      }
  return unwritten;
}

}  // namespace ghostrank
