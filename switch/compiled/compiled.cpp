#include "switch/compiled/compiled.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "switch/compiled/lanes.h"
#include "switch/wire/sparse.h"

namespace ghostrank::switchml {

CompiledSwitch::CompiledSwitch(SwitchPlan plan)
    : plan_(std::move(plan)), ports_(static_cast<std::size_t>(plan_.ports)) {
  plan_.loss.resize(ports_.size());
  for (int p = 0; p < plan_.ports; ++p) {
    const PortLoss& loss = plan_.loss[p];
    loss_in_.emplace_back(loss.ingress, loss_seed(plan_.seed, p, Direction::ingress));
    loss_out_.emplace_back(loss.egress, loss_seed(plan_.seed, p, Direction::egress));
  }
  std::vector<JobPlan> wanted;
  wanted.swap(plan_.jobs);
  for (const JobPlan& job : wanted) {
    if (const std::string why = admit(job); !why.empty())
      throw std::invalid_argument("job '" + job.name + "': " + why);
  }
  index_sources();
}

std::string CompiledSwitch::admit(const JobPlan& job) {
  if (std::string why = reason_to_refuse(plan_, job); !why.empty()) return why;
  jobs_.push_back(std::make_unique<Job>(Job{
      job,
      Pool(static_cast<int>(job.workers.size()), job.slots, job.elements, job.tells_old_packets()),
      {},
      queue_pairs_of(job),
      job.numbers()}));
  plan_.jobs.push_back(job);
  index_sources();
  return {};
}

bool CompiledSwitch::remove(const std::string& name) {
  const auto named = [&](const auto& job) { return job->plan.name == name; };
  if (std::erase_if(jobs_, named) == 0) return false;
  std::erase_if(plan_.jobs, [&](const JobPlan& job) { return job.name == name; });
  index_sources();
  return true;
}

bool CompiledSwitch::reset(const std::string& name) {
  for (auto& job : jobs_) {
    if (job->plan.name != name) continue;
    job->pool.reset();
    for (auto& flows : job->flows) {
      for (QueuePairState& flow : flows) flow.in = {};  // outgoing sequence numbers continue
    }
    return true;
  }
  return false;
}

SwitchCounters CompiledSwitch::counters() const {
  SwitchCounters all{ports_, {}};
  for (const auto& job : jobs_) all.jobs.emplace_back(job->plan.name, job->counters);
  return all;
}

const JobCounters* CompiledSwitch::counters(const std::string& name) const {
  for (const auto& job : jobs_) {
    if (job->plan.name == name) return &job->counters;
  }
  return nullptr;
}

void CompiledSwitch::index_sources() {
  sources_.assign(ports_.size(), {});
  for (const auto& job : jobs_) {
    const JobPlan& p = job->plan;
    for (std::size_t w = 0; w < p.workers.size(); ++w) {
      sources_[p.workers[w].port].push_back(
          {p.workers[w].ip, p.first_slot, p.slots, static_cast<int>(w), job.get()});
    }
    if (p.uplink) {
      sources_[p.uplink->port].push_back({p.uplink->ip, p.first_slot, p.slots, kUpper, job.get()});
    }
  }
}

void CompiledSwitch::receive(int port, std::span<const std::byte> frame, Transmitter& out) {
  PortCounters& counters = ports_[port];
  ++counters.received;
  counters.received_bytes += frame.size();
  if (!whole(frame)) {
    ++counters.malformed;
    return;
  }
  frame = without_padding(frame);
  Packet packet;
  RocePacket roce;
  Kind kind = parse(frame, packet);
  if (kind == Kind::switchml) return receive_udp(port, packet, out);
  if (kind == Kind::other) kind = parse_sparse(frame, packet);
  if (kind == Kind::switchml) return receive_sparse(port, packet, out);
  // RoCEv2 packets that are not for the switch itself are RDMA between hosts: forwarded, not
  // parsed.
  if (kind == Kind::other && holds_udp(frame) && udp_target(frame.data()).ip == plan_.ip)
    kind = parse_roce(frame, roce);
  if (kind == Kind::switchml) return receive_roce(port, roce, out);
  if (kind == Kind::other) return forward(port, frame, out);
  ++counters.malformed;
}

void CompiledSwitch::receive_udp(int port, const Packet& packet, Transmitter& out) {
  const auto at = static_cast<std::size_t>(port);
  const bool published = packet.type == PacketType::everyone;
  if (loss_in_[at].lost()) {
    ++ports_[at].lost;
    return;
  }
  for (const Source& source : sources_[at]) {
    const int slot = packet.slot - source.first_slot;
    if (source.ip != packet.source.ip || slot < 0 || slot >= source.slots ||
        source.job->plan.format != Format::udp || (!published && !source.job->plan.all_functions) ||
        (packet.elements != source.job->plan.elements && packet.elements != 0))
      continue;
    return sum(source, packet, out);
  }
  ++ports_[at].strangers;
}

// Forwards an ordinary frame by its destination address; a group address goes to every other port.
void CompiledSwitch::forward(int port, std::span<const std::byte> frame, Transmitter& out) {
  if ((std::to_integer<unsigned>(frame[0]) & 1) != 0) {
    for (int p = 0; p < plan_.ports; ++p) {
      if (p != port) copy_to(p, frame, out);
    }
    return;
  }
  for (const Forward& f : plan_.forward) {
    if (std::memcmp(f.mac.data(), frame.data(), f.mac.size()) == 0)
      return copy_to(f.port, frame, out);
  }
  ++ports_[port].unknown;
}

Verdict CompiledSwitch::receive_chunk(const Source& source, const Packet& packet) {
  Job& job = *source.job;
  ++job.counters.received;
  const int slot = packet.slot - job.plan.first_slot;
  const Verdict verdict = job.pool.receive(source.worker, slot, packet);
  switch (verdict) {
    case Verdict::collect:
      ++job.counters.collected;
      break;
    case Verdict::duplicate:
      ++job.counters.duplicates;
      break;
    case Verdict::broadcast:
      ++job.counters.broadcasts;
      break;
    case Verdict::retransmit:
      ++job.counters.retransmissions;
      break;
  }
  return verdict;
}

void CompiledSwitch::sum(const Source& source, const Packet& packet, Transmitter& out) {
  Job& job = *source.job;
  const int slot = packet.slot - job.plan.first_slot;
  if (source.worker == kUpper) {
    ++job.counters.results;
    if (job.pool.answered(slot, packet)) return;  // everybody has been sent it
    if (job.plan.guarded) job.pool.keep(slot, packet);
    return send_to_all(job, packet, out);
  }
  const Verdict verdict = receive_chunk(source, packet);
  if (verdict == Verdict::collect || verdict == Verdict::duplicate) return;
  const bool has_values = job.pool.has_values(slot, packet.set);
  const bool leads_up = job.plan.uplink && !job.pool.answered(slot, packet);
  if (!has_values && !job.plan.uplink) return;
  const bool all = verdict == Verdict::broadcast;
  Packet result = packet;
  result.elements = has_values ? job.plan.elements : 0;  // whatever the last chunk has
  result.e0 = job.pool.e0(slot, packet.set);
  result.e1 = job.pool.e1(slot, packet.set);
  std::byte wire[4 * 256];
  store_lanes(wire, job.pool.values(slot, packet.set), job.plan.elements);
  result.values = wire;
  if (leads_up) return send_up(job, result, out);
  if (!all) return send_result(job, source.worker, result, out);
  send_to_all(job, result, out);
}

void CompiledSwitch::send_to_all(Job& job, const Packet& result, Transmitter& out) {
  for (int w = 0; w < std::ssize(job.plan.workers); ++w) send_result(job, w, result, out);
}

std::byte* CompiledSwitch::transmit(int port, std::size_t bytes, Transmitter& out) {
  PortCounters& counters = ports_[port];
  ++counters.sent;
  counters.sent_bytes += bytes;
  return out.frame(port, bytes);
}

void CompiledSwitch::copy_to(int port, std::span<const std::byte> frame, Transmitter& out) {
  std::memcpy(transmit(port, frame.size(), out), frame.data(), frame.size());
}

// To a worker that takes no elements the result is a credit. A leaf with several workers gets the
// elements in any case, since one of its workers may take them.
void CompiledSwitch::send_result(Job& job, int number, const Packet& result, Transmitter& out) {
  const Worker& worker = job.plan.workers[static_cast<std::size_t>(number)];
  Packet packet = result;
  if (worker.workers == 1 && !takes(result, job.numbers[static_cast<std::size_t>(number)]))
    packet.elements = 0;
  const std::uint16_t thread = result.target.udp & static_cast<std::uint16_t>(~kUdpPortMask);
  packet.source = {plan_.mac, plan_.ip, result.target.udp};
  packet.target = {worker.mac, worker.ip,
                   static_cast<std::uint16_t>(job.plan.worker_port + thread)};
  send_packet(job, worker.port, packet, out);
}

// To the switch above, a leaf is one worker. The upper switch sends its results back to the UDP
// port that the sum was sent to.
void CompiledSwitch::send_up(Job& job, const Packet& packet, Transmitter& out) {
  const Uplink& up = *job.plan.uplink;
  Packet sum = packet;
  sum.source = {plan_.mac, plan_.ip, packet.target.udp};
  sum.target = {up.mac, up.ip, packet.target.udp};
  send_packet(job, up.port, sum, out);
}

void CompiledSwitch::send_packet(Job& job, int port, const Packet& packet, Transmitter& out) {
  if (loss_out_[static_cast<std::size_t>(port)].lost()) {
    ++ports_[static_cast<std::size_t>(port)].lost;
    return;
  }
  const bool sparse = job.plan.format == Format::omnireduce;
  const std::size_t head = sparse ? kSparseHeaderBytes : header_bytes(packet.type);
  const std::size_t bytes =
      sparse ? sparse_frame_bytes(packet.elements) : frame_bytes(packet.elements, packet.type);
  std::byte* frame = transmit(port, bytes, out);
  sparse ? write_sparse_header(packet, frame) : write_header(packet, frame);
  std::copy_n(packet.values, bytes - head, frame + head);  // a credit: 0 bytes, from null
  ++job.counters.sent;
}

}  // namespace ghostrank::switchml
