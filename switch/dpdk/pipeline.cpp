#include "switch/dpdk/pipeline.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <rte_mbuf.h>
#include <rte_swx_ctl.h>
#include <rte_swx_pipeline.h>
#include <rte_swx_table_em.h>
#include <rte_swx_table_wm.h>
#include <stdexcept>

#include "switch/wire/switchml.h"

namespace ghostrank::dpdk {
namespace {

constexpr const char* kPortType = "ghostrank";
constexpr const char* kTableType = "ghostrank";  // see configure()
constexpr const char* kHash = "ghostrank";
constexpr int kAnyNumaNode = 0;
constexpr std::size_t kRoom = RTE_PKTMBUF_HEADROOM + kGrowth + kFrameRoom;  // of a buffer

void check(int status, const std::string& what) {
  if (status != 0)
    throw std::runtime_error("DPDK refuses " + what + ": " + std::strerror(std::abs(status)));
}

// One end of the pipeline. DPDK would make a port from `args`; ours exist already.
struct End {
  PortSet* set = nullptr;
  rte_mempool* buffers = nullptr;
  int port = -1;                 // < 0: gives no packets, and frees those sent to it
  int all_but = -1;              // >= 0: stands for every port but this one
  bool in_order = false;         // gives no packet while one is inside
  const bool* closed = nullptr;  // gives no packet while this is true
};

void* make_end(void* args) { return args; }
void free_end(void*) {}

int receive(void* port, rte_swx_pkt* packet) {
  End& end = *static_cast<End*>(port);
  if (end.port < 0 || *end.closed) return 0;
  if (end.in_order && rte_mempool_in_use_count(end.buffers) > 0) return 0;
  const std::span<const std::byte> frame = end.set->receive(end.port);
  if (frame.empty()) return 0;
  // DPDK itself frees a dropped packet, as one of its own buffers. There are always enough buffers,
  // because the pipeline holds a few dozen at most.
  rte_mbuf* buffer = rte_pktmbuf_alloc(end.buffers);
  packet->handle = buffer;
  packet->pkt = static_cast<std::uint8_t*>(buffer->buf_addr);
  packet->offset = buffer->data_off + kGrowth;
  std::memcpy(packet->pkt + packet->offset, frame.data(), frame.size());
  packet->length = static_cast<std::uint32_t>(frame.size());
  return 1;
}

void copy_out(End& end, const rte_swx_pkt& packet) {
  const bool fits = packet.offset <= kRoom && packet.length <= kRoom - packet.offset;
  const std::span<const std::byte> frame{
      reinterpret_cast<const std::byte*>(packet.pkt + packet.offset), packet.length};
  const int first = end.all_but >= 0 ? 0 : end.port;
  const int past = end.all_but >= 0 ? end.set->count() : end.port + 1;
  for (int p = std::max(first, 0); p < past; ++p) {
    if (p == end.all_but) continue;
    if (fits)
      end.set->send(p, frame);
    else
      ++end.set->counters[p].overlong;
  }
}

void send(void* port, rte_swx_pkt* packet) {
  End& end = *static_cast<End*>(port);
  copy_out(end, *packet);
  rte_pktmbuf_free(static_cast<rte_mbuf*>(packet->handle));
}

// `bytes`: where the copy ends.
void send_clone(void* port, rte_swx_pkt* packet, std::uint32_t bytes) {
  rte_swx_pkt copy = *packet;
  copy.length = std::min(copy.length, bytes);
  copy_out(*static_cast<End*>(port), copy);
}

void send_fast_clone(void* port, rte_swx_pkt* packet) {
  copy_out(*static_cast<End*>(port), *packet);
}

void flush(void*) {}
void read_statistics_in(void*, rte_swx_port_in_stats* s) { *s = {}; }
void read_statistics_out(void*, rte_swx_port_out_stats* s) { *s = {}; }

rte_swx_table_match_type match_type(SpecMatch match) {
  switch (match) {
    case SpecMatch::exact:
      return RTE_SWX_TABLE_MATCH_EXACT;
    case SpecMatch::lpm:
      return RTE_SWX_TABLE_MATCH_LPM;
    case SpecMatch::wildcard:
      break;
  }
  return RTE_SWX_TABLE_MATCH_WILDCARD;
}

// Consecutive keys, as slots are, get consecutive buckets and so share cache lines.
std::uint32_t hash(const void* key, std::uint32_t bytes, std::uint32_t seed) {
  constexpr std::uint32_t kTogether = 64, kInBucket = 2, kOdd = 0x9e3779b1, kWord = 4;
  std::uint32_t all = seed, word = 0;
  const auto* at = static_cast<const unsigned char*>(key);
  for (; bytes > kWord; at += kWord, bytes -= kWord) {
    std::memcpy(&word, at, kWord);
    all = (all ^ word) * kOdd;
    all ^= all >> 15;
  }
  if (bytes == kWord) {
    std::memcpy(&word, at, kWord);
  } else {
    word = 0;
    for (std::uint32_t i = 0; i < bytes; ++i) word |= std::uint32_t{at[i]} << 8 * i;
  }
  all = (all ^ word / kTogether) * kOdd;
  all ^= all >> 15;
  word %= kTogether;
  return all * kOdd + word / kInBucket + (word << 17);
}

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> all;
  for (const std::string& t : texts) all.push_back(t.c_str());
  return all;
}

void configure_table(rte_swx_pipeline* pipeline, const SpecTable& table) {
  std::vector<rte_swx_match_field_params> fields;
  for (const SpecKey& key : table.keys)
    fields.push_back({key.field.c_str(), match_type(key.match)});
  std::vector<const char*> actions;
  std::vector<int> in_table, as_default;
  for (const SpecTableAction& action : table.actions) {
    actions.push_back(action.name.c_str());
    in_table.push_back(action.in_table);
    as_default.push_back(action.as_default);
  }
  rte_swx_pipeline_table_params params{};
  params.fields = fields.data();
  params.n_fields = static_cast<std::uint32_t>(fields.size());
  params.action_names = actions.data();
  params.action_is_for_table_entries = in_table.data();
  params.action_is_for_default_entry = as_default.data();
  params.n_actions = static_cast<std::uint32_t>(actions.size());
  params.default_action_name = table.default_action.c_str();
  params.default_action_args =
      table.default_arguments.empty() ? nullptr : table.default_arguments.c_str();
  params.default_action_is_const = table.default_is_const;
  params.hash_func_name = kHash;
  check(rte_swx_pipeline_table_config(pipeline, table.name.c_str(), &params, kTableType, nullptr,
                                      table.size),
        "table '" + table.name + "'");
}

}  // namespace

struct Pipeline::Ends {
  rte_mempool* buffers = nullptr;  // freed with DPDK's environment
  std::vector<End> all;
  End nowhere;
  bool closed = false;
};

Pipeline::Pipeline(const Spec& spec, PortSet& ports, bool in_order, int number)
    : ends_(std::make_unique<Ends>()) {
  const std::string name = "ghostrank" + std::to_string(number);
  check(rte_swx_pipeline_config(&pipeline_, name.c_str(), kAnyNumaNode), "a pipeline");
  try {
    configure_ports(ports, in_order, name);
    configure(spec);
    check(rte_swx_pipeline_build(pipeline_), "to build the pipeline");
    mirror(ports.count());
    control_ = rte_swx_ctl_pipeline_create(pipeline_);
    if (control_ == nullptr) throw std::runtime_error("DPDK refuses to control the pipeline");
  } catch (...) {
    rte_swx_pipeline_free(pipeline_);
    throw;
  }
}

Pipeline::~Pipeline() {
  rte_swx_ctl_pipeline_free(control_);
  rte_swx_pipeline_free(pipeline_);
}

void Pipeline::configure_ports(PortSet& ports, bool in_order, const std::string& pool) {
  rte_swx_port_in_ops in{make_end, free_end, receive, read_statistics_in};
  rte_swx_port_out_ops out{make_end, free_end,           send, send_fast_clone, send_clone,
                           flush,    read_statistics_out};
  check(rte_swx_pipeline_port_in_type_register(pipeline_, kPortType, &in), "a type of port");
  check(rte_swx_pipeline_port_out_type_register(pipeline_, kPortType, &out), "a type of port");
  // The pipeline holds 16 packets at a time. DPDK's cache of free buffers returns the last freed
  // one first, which is still in the processor's cache. With `in_order` the cache of free buffers
  // is off, because it makes counting the buffers in use slow.
  constexpr unsigned kBuffers = 63, kFree = 16;
  ends_->buffers = rte_pktmbuf_pool_create_by_ops(pool.c_str(), kBuffers, in_order ? 0 : kFree, 0,
                                                  kRoom, kAnyNumaNode, "ring_sp_sc");
  if (ends_->buffers == nullptr) throw std::runtime_error("DPDK has no memory for frames");
  ends_->nowhere = {&ports, ends_->buffers};
  for (int p = 0; p < ports.count(); ++p)
    ends_->all.push_back({&ports, ends_->buffers, p, -1, in_order, &ends_->closed});
  for (int p = 0; p < ports.count(); ++p)
    ends_->all.push_back({&ports, ends_->buffers, -1, p, in_order, &ends_->closed});
  const auto count = static_cast<std::uint32_t>(ports.count());
  // DPDK wants a power of two.
  for (std::uint32_t p = 0; p < std::bit_ceil(count); ++p) {
    End* end = p < count ? &ends_->all[p] : &ends_->nowhere;
    check(rte_swx_pipeline_port_in_config(pipeline_, p, kPortType, end),
          "port " + std::to_string(p));
  }
  // The last port is for mirroring sessions that lead nowhere; DPDK adds one more for dropped
  // packets.
  for (std::uint32_t p = 0; p <= 2 * count; ++p) {
    End* end = p < 2 * count ? &ends_->all[p] : &ends_->nowhere;
    check(rte_swx_pipeline_port_out_config(pipeline_, p, kPortType, end),
          "port " + std::to_string(p));
  }
  rte_swx_pipeline_mirroring_params mirroring{kMirrorSlots, kMirrorSessions};
  check(rte_swx_pipeline_mirroring_config(pipeline_, &mirroring), "mirroring");
}

void Pipeline::configure(const Spec& spec) {
  check(rte_swx_pipeline_table_type_register(pipeline_, kTableType, RTE_SWX_TABLE_MATCH_EXACT,
                                             &rte_swx_table_exact_match_unoptimized_ops),
        "a type of table");
  check(rte_swx_pipeline_hash_func_register(pipeline_, kHash, hash), "a hash function");
  for (const SpecStruct& s : spec.structs) {
    std::vector<rte_swx_field_params> fields;
    for (const SpecField& f : s.fields) fields.push_back({f.name.c_str(), f.bits});
    check(rte_swx_pipeline_struct_type_register(pipeline_, s.name.c_str(), fields.data(),
                                                static_cast<std::uint32_t>(fields.size()), 0),
          "struct '" + s.name + "'");
  }
  for (const SpecHeader& h : spec.headers) {
    check(rte_swx_pipeline_packet_header_register(pipeline_, h.name.c_str(), h.type.c_str()),
          "header '" + h.name + "'");
  }
  check(rte_swx_pipeline_packet_metadata_register(pipeline_, spec.metadata.c_str()),
        "the metadata");
  for (const SpecRegisters& r : spec.registers) {
    check(rte_swx_pipeline_regarray_config(pipeline_, r.name.c_str(), r.size, r.initial),
          "register array '" + r.name + "'");
  }
  for (const SpecAction& a : spec.actions) {
    std::vector<const char*> lines = pointers(a.instructions);
    check(rte_swx_pipeline_action_config(pipeline_, a.name.c_str(),
                                         a.type.empty() ? nullptr : a.type.c_str(), lines.data(),
                                         static_cast<std::uint32_t>(lines.size())),
          "action '" + a.name + "'");
  }
  for (const SpecTable& t : spec.tables) configure_table(pipeline_, t);
  std::vector<const char*> lines = pointers(spec.instructions);
  check(rte_swx_pipeline_instructions_config(pipeline_, lines.data(),
                                             static_cast<std::uint32_t>(lines.size())),
        "the instructions of apply");
}

void Pipeline::mirror(int ports) {
  constexpr auto kCreditBytes =
      static_cast<std::uint32_t>(switchml::frame_bytes(0, switchml::PacketType::to_one));
  for (std::uint32_t session = 0; session < kMirrorSessions; ++session) {
    const auto count = static_cast<std::uint32_t>(ports);
    const std::uint32_t port = session % kWholeSessions;
    rte_swx_pipeline_mirroring_session_params params{};
    params.port_id = port < count ? port : 2 * count;
    params.truncation_length = session < kWholeSessions ? 0 : kCreditBytes;
    check(rte_swx_ctl_pipeline_mirroring_session_set(pipeline_, session, &params),
          "mirroring session " + std::to_string(session));
  }
}

void Pipeline::change(const std::vector<TableEntry>& entries) {
  for (const TableEntry& e : entries) {
    int blank = 0;
    rte_swx_table_entry* entry =
        rte_swx_ctl_pipeline_table_entry_read(control_, e.table.c_str(), e.text.c_str(), &blank);
    const auto apply =
        e.remove ? rte_swx_ctl_pipeline_table_entry_delete : rte_swx_ctl_pipeline_table_entry_add;
    const bool taken = entry != nullptr && apply(control_, e.table.c_str(), entry) == 0;
    if (entry != nullptr) {
      std::free(entry->key);
      std::free(entry->key_mask);
      std::free(entry->action_data);
      std::free(entry);
    }
    if (!taken) {
      rte_swx_ctl_pipeline_abort(control_);
      throw std::runtime_error("table '" + e.table + "' does not take the entry: " + e.text);
    }
  }
  check(rte_swx_ctl_pipeline_commit(control_, 1), "to commit table entries");
}

void Pipeline::write_register(const std::string& name, std::uint32_t index, std::uint64_t value) {
  check(rte_swx_ctl_pipeline_regarray_write(pipeline_, name.c_str(), index, value),
        "to write register " + name + "[" + std::to_string(index) + "]");
}

std::uint64_t Pipeline::read_register(const std::string& name, std::uint32_t index) {
  std::uint64_t value = 0;
  check(rte_swx_ctl_pipeline_regarray_read(pipeline_, name.c_str(), index, &value),
        "to read register " + name + "[" + std::to_string(index) + "]");
  return value;
}

void Pipeline::drain() {
  constexpr std::uint32_t kSome = 1000;
  ends_->closed = true;
  while (rte_mempool_in_use_count(ends_->buffers) > 0) run(kSome);
  ends_->closed = false;
}

void Pipeline::run(std::uint32_t instructions) {
  rte_swx_pipeline_run(pipeline_, instructions);
  rte_swx_pipeline_flush(pipeline_);
}

}  // namespace ghostrank::dpdk
