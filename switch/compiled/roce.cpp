// The compiled switch's jobs over RoCEv2: chunks arrive as RDMA writes to queue pairs of the
// switch, results leave as RDMA writes to the workers' queue pairs.
//
// A result has the form of the packet that completed its slot, and every worker receives results as
// messages in order: a worker's packets are summed in order only, so the slots of a message become
// complete in order, whichever worker completes them. A worker that misses a result asks again for
// the whole message; the switch answers those packets to that worker alone.
#include <algorithm>
#include <cstring>

#include "switch/compiled/compiled.h"
#include "switch/compiled/lanes.h"

namespace ghostrank::switchml {
namespace {

// Only the last packet of a message carries exponents. The others use the lowest value, which
// leaves the maximum of their slot unchanged.
constexpr std::int8_t kNoExponent = -128;

Packet chunk_of(const RocePacket& packet, RoceSlot at) {
  Packet chunk;
  chunk.slot = at.slot;
  chunk.set = at.set;
  chunk.e0 = has_immediate(packet.opcode) ? packet.e0 : kNoExponent;
  chunk.e1 = has_immediate(packet.opcode) ? packet.e1 : kNoExponent;
  chunk.elements = kRoceElements;
  chunk.values = packet.values;
  return chunk;
}

}  // namespace

std::vector<std::vector<CompiledSwitch::QueuePairState>> CompiledSwitch::queue_pairs_of(
    const JobPlan& job) {
  if (job.format != Format::roce) return {};
  std::vector<std::vector<QueuePairState>> flows;
  for (const Worker& worker : job.workers) {
    flows.emplace_back();
    for (const QueuePair& pair : worker.queue_pairs)
      flows.back().push_back({{}, pair.first_sequence});
  }
  return flows;
}

void CompiledSwitch::receive_roce(int port, const RocePacket& packet, Transmitter& out) {
  const auto at = static_cast<std::size_t>(port);
  if (loss_in_[at].lost()) {
    ++ports_[at].lost;
    return;
  }
  const int worker = worker_of(packet.queue_pair);
  for (const Source& source : sources_[at]) {
    if (source.ip == packet.source.ip && source.worker == worker &&
        source.job->plan.format == Format::roce)
      return sum_roce(port, source, packet, out);
  }
  ++ports_[at].strangers;
}

void CompiledSwitch::sum_roce(int port, const Source& source, const RocePacket& packet,
                              Transmitter& out) {
  Job& job = *source.job;
  std::vector<QueuePairState>& flows = job.flows[source.worker];
  const auto queue = static_cast<std::size_t>(queue_of(packet.queue_pair));
  if (queue >= flows.size()) {
    ++ports_[port].strangers;
    return;
  }
  QueuePairState& flow = flows[queue];
  const auto at = follow(flow.in, packet);
  if (!at) {
    ++job.counters.gaps;
    return;
  }
  const int slot = at->slot - source.first_slot;
  if (slot < 0 || slot >= source.slots) {
    flow.in.broken = true;
    ++ports_[port].strangers;
    return;
  }
  ++job.counters.received;
  const Verdict verdict = job.pool.receive(source.worker, slot, chunk_of(packet, *at));
  if (verdict == Verdict::collect || verdict == Verdict::duplicate) {
    ++(verdict == Verdict::collect ? job.counters.collected : job.counters.duplicates);
    return;
  }
  RocePacket result = packet;
  result.e0 = job.pool.e0(slot, at->set);
  result.e1 = job.pool.e1(slot, at->set);
  std::byte wire[4 * kRoceElements];
  store_lanes(wire, job.pool.values(slot, at->set), kRoceElements);
  result.values = wire;
  if (verdict == Verdict::retransmit) {
    ++job.counters.retransmissions;
    return send_roce(job, source.worker, result, out);
  }
  ++job.counters.broadcasts;
  for (int w = 0; w < job.pool.workers(); ++w) send_roce(job, w, result, out);
}

void CompiledSwitch::send_roce(Job& job, int w, const RocePacket& result, Transmitter& out) {
  const Worker& worker = job.plan.workers[w];
  const auto queue = static_cast<std::size_t>(queue_of(result.queue_pair));
  QueuePairState& flow = job.flows[w][queue];
  RocePacket packet = result;
  packet.source = {plan_.mac, plan_.ip, result.source.udp};
  packet.target = {worker.mac, worker.ip, kRocePort};
  packet.queue_pair = worker.queue_pairs[queue].number;
  packet.remote_key = worker.remote_key;
  // A lost packet uses up its sequence number, so the worker sees the gap.
  packet.sequence = flow.out_sequence;
  flow.out_sequence = next_sequence(flow.out_sequence);
  const auto port = static_cast<std::size_t>(worker.port);
  if (loss_out_[port].lost()) {
    ++ports_[port].lost;
    return;
  }
  const std::size_t header = roce_header_bytes(packet.opcode);
  std::byte* frame = transmit(worker.port, roce_frame_bytes(packet.opcode), out);
  write_roce_header(packet, frame);
  std::memcpy(frame + header, result.values, 4 * kRoceElements);
  std::memset(frame + header + 4 * kRoceElements, 0, kIcrcBytes);
  ++job.counters.sent;
}

}  // namespace ghostrank::switchml
