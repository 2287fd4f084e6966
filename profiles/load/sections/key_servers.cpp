#include "profiles/load/sections/key_servers.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "collectives/compress/byteps.h"
#include "collectives/schemes/keyed/piece_compression.h"
#include "profiles/input/idle.h"
#include "profiles/planners/compression/piece_sizes.h"
#include "profiles/planners/compression/times.h"

namespace ghostrank {
namespace {

// BYTEPS_SCHEDULING_CREDIT is off by default. The best split assumes that a node's sends as a
// worker and as a server take turns, so it needs a credit: a window of enough pieces to keep every
// server busy.
constexpr std::uint64_t kPiecesPerServer = 2;

void check_rack_nics(const Settings& in, const JobSpec& spec) {
  const Setting& given = in.at("parallel.rack_nics");
  const int nics = spec.cluster.servers.colocated ? 1 : spec.cluster.servers.nics;
  if (spec.parallel.rack_nics == 0) return;
  if (spec.collectives.algorithm(Func::all_reduce) != "phub_racks")
    fail(given.mark, "parallel.rack_nics is " + given.text +
                         ", but servers are in no racks; add  collectives: {allreduce: "
                         "phub_racks}");
  if (spec.parallel.rack_nics >= nics)
    fail(given.mark, "parallel.rack_nics is " + given.text + ", and servers have " +
                         std::to_string(nics) + (nics == 1 ? " NIC" : " NICs") +
                         ", of which one at least must be for the nodes; raise servers.nics");
}

// Refuses a failing server that does not exist, and asynchronous jobs that need a fixed result.
void check_failure(const Settings& in, const JobSpec& spec) {
  const Setting& fails = in.at("servers.fails");
  const int places = spec.cluster.servers.places(spec.cluster.rank_nodes());
  if (spec.cluster.servers.fails >= places)
    fail(fails.mark, "servers.fails is " + fails.text + ", and the job has servers 0 to " +
                         std::to_string(places - 1));
  if (spec.parallel.asynchronous && spec.parallel.elastic)
    fail(in.at("parallel.asynchronous").mark,
         "parallel.asynchronous: what a dead server stored is lost, so no other one can take its "
         "keys; use parallel.elastic=false");
  if (spec.parallel.asynchronous && in.boolean("run.verify"))
    fail(in.at("run.verify").mark,
         "run.verify: with parallel.asynchronous a result depends on who has pushed before; use "
         "parallel.asynchronous=false");
}

// For methods whose payload sizes depend on the data: estimates the sizes from the job's law.
void expect_sizes(const Settings& in, const JobSpec& spec, PieceCompression& pieces) {
  if (!spec.gradients.parts.empty() || spec.gradients.drift())
    fail(in.at(in.given("tensors.drift") ? "tensors.drift" : "tensors.distribution").mark,
         "tensors.distribution: servers compress pieces of every tensor by one law that stays; "
         "leave its rules and tensors.drift out");
  const auto sizes =
      std::make_shared<PieceSizes>(pieces, spec.gradients.laws.front(), spec.cluster.rank_nodes(),
                                   spec.cluster.gpus_per_node, spec.run.seed);
  pieces.expected = [sizes](std::uint64_t elements) { return sizes->of(elements); };
}

}  // namespace

void read_key_servers(const Settings& in, JobSpec& spec) {
  const Framework framework = spec.parallel.framework;
  if (!plays_at_servers(framework)) return;
  const std::string scheme(name_of(framework));
  const Setting& named = in.at("collectives.allreduce");
  const bool racks = framework == Framework::phub && named.text == "phub_racks";
  if (named.given && named.text != "auto" && named.text != scheme && !racks)
    fail(named.mark, "collectives.allreduce is " + quote(named.text) + ", but framework " + scheme +
                         " sums gradients by its own scheme; leave it out");
  spec.collectives.algorithm(Func::all_reduce) = racks ? named.text : scheme;
  if (spec.parallel.launch == Launch::flat)
    fail(in.at("parallel.launch").mark, "parallel.launch: framework " + scheme +
                                            " has no call for all gradients; use overlap or "
                                            "after_backward");
}

void settle_key_servers(const Settings& in, JobSpec& spec) {
  const ServerSpec& servers = spec.cluster.servers;
  const int nodes = spec.cluster.rank_nodes();
  const Setting& count = in.at("servers.count");
  if (servers.colocated && servers.count > nodes)
    fail(count.mark, "servers.count is " + count.text + ", but the cluster has " +
                         std::to_string(nodes) +
                         " nodes beside whose GPUs servers can be; use at most as many, or "
                         "servers.placement: dedicated");
  const Framework framework = spec.parallel.framework;
  if (!plays_at_servers(framework)) return;
  check_rack_nics(in, spec);
  check_failure(in, spec);
  if (servers.places(nodes) == 0)
    fail(in.at("parallel.framework").mark,
         "framework " + std::string(name_of(framework)) +
             " needs servers, and servers.count is 0; set it, with "
             "servers.placement: dedicated, colocated or mixed");
  spec.collectives.at_servers = key_server_options(spec.parallel, servers.places(nodes));
}

void compress_at_servers(const Settings& in, JobSpec& spec) {
  if (spec.parallel.framework != Framework::byteps || !spec.compression) return;
  const CompressionSpec how = *std::exchange(spec.compression, std::nullopt);
  const Compressor& method = *how.method;
  const std::string name(method.name);
  const auto refuse = [&](const std::string& key, const std::string& why) {
    fail(in.at(key).mark, key + ": " + why);
  };
  if (method.rounds > 1 || method.majority)
    refuse(
        "compression.method",
        name +
            (method.rounds > 1 ? " needs several rounds" : " sends votes, which are no gradients") +
            ", and servers sum gradients, of one payload each; use onebit, topk, randomk, "
            "dithering or another of one round");
  if (spec.precision.gradients != DataType::float32)
    refuse("compression.method", "servers compress float32 alone; use precision.gradients=fp32");
  if (how.memory != Memory::none && how.memory != Memory::residual &&
      how.memory != Memory::nesterov)
    refuse("compression.memory",
           std::string(name_of(how.memory)) + " is not BytePS's; use none, residual or nesterov");
  for (const char* key : {"compression.communicator", "compression.gather_us",
                          "compression.gather_ns", "compression.merge"})
    if (is_changed(in.at(key)))
      refuse(key, "framework byteps exchanges pieces with servers, each by itself; leave it out");
  for (const char* key : {"parallel.asynchronous", "parallel.elastic"})
    if (in.boolean(key))
      refuse(key,
             "servers that compress answer with the sum of a round, of all nodes and with "
             "what they kept of the rounds before; leave one of the two out");
  PieceCompression pieces{
      &byteps_form(method), how.options, how.memory, how.min_bytes, [how](std::uint64_t elements) {
        const CompressionTime time = compression_time(how, elements);
        return CodecTime{
            std::llround(1e3 * (time.compress_ns + memory_time_ns(how.memory, elements))),
            std::llround(1e3 * time.decompress_ns)};
      }};
  if (method.measure) expect_sizes(in, spec, pieces);
  spec.collectives.at_servers.compression =
      std::make_shared<const PieceCompression>(std::move(pieces));
  spec.notes.push_back("compression " + name +
                       ": of what nodes and servers exchange, pieces and sums of tensors of " +
                       std::to_string(how.min_bytes) + " bytes or more" +
                       (method.measure && !spec.run.verify
                            ? "; each is as long as of drawn gradients on average (run.verify=true "
                              "sends real ones)"
                            : ""));
}

AtServers key_server_options(const ParallelPlan& plan, int places) {
  AtServers out;
  if (!plays_at_servers(plan.framework)) return out;
  out.partition_bytes = out.chunk_bytes = plan.partition_bytes;
  if (plan.framework == Framework::phub) {
    out.optimizer = plan.optimizer;
    out.rack_nics = plan.rack_nics;
    return out;
  }
  out.bound = plan.best_split;
  out.hash = plan.key_hash;
  out.schedules = plan.server_schedule;
  out.waits = !plan.asynchronous;
  out.timeout_ps = plan.server_timeout;
  out.elastic = plan.elastic;
  if (plan.own_credit)
    out.credit_bytes = std::max<std::uint64_t>(1, plan.credit_bytes);
  else if (out.bound)
    out.credit_bytes = kPiecesPerServer * out.partition_bytes * static_cast<std::uint64_t>(places);
  return out;
}

}  // namespace ghostrank
