#include "switch/dpdk/pipeline.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <rte_mbuf.h>
#include <rte_swx_ctl.h>
#include <rte_swx_pipeline.h>
#include <rte_swx_table_em.h>
#include <rte_swx_table_wm.h>
#include <stdexcept>

namespace ghostrank::dpdk {
namespace {

constexpr const char* kPortType = "ghostrank";
constexpr int kAnyNumaNode = 0;

void check(int status, const std::string& what) {
  if (status != 0)
    throw std::runtime_error("DPDK refuses " + what + ": " + std::strerror(std::abs(status)));
}

// One end of the pipeline. DPDK makes a port from `args`; ours are made already.
struct End {
  PortSet* set = nullptr;
  rte_mempool* buffers = nullptr;
  int port = -1;  // < 0: nothing comes from here, and what goes here is freed
};

void* make_end(void* args) { return args; }
void free_end(void*) {}

int receive(void* port, rte_swx_pkt* packet) {
  End& end = *static_cast<End*>(port);
  if (end.port < 0) return 0;
  const std::span<const std::byte> frame = end.set->receive(end.port);
  if (frame.empty()) return 0;
  // DPDK frees what is dropped itself, as one of its own buffers. There are always enough: the
  // pipeline holds a few dozen at most.
  rte_mbuf* buffer = rte_pktmbuf_alloc(end.buffers);
  packet->handle = buffer;
  packet->pkt = static_cast<std::uint8_t*>(buffer->buf_addr);
  packet->offset = buffer->data_off;
  std::memcpy(packet->pkt + packet->offset, frame.data(), frame.size());
  packet->length = static_cast<std::uint32_t>(frame.size());
  return 1;
}

void copy_out(End& end, const rte_swx_pkt& packet) {
  if (end.port < 0) return;
  constexpr std::size_t kRoom = RTE_PKTMBUF_HEADROOM + kFrameRoom;
  if (packet.offset > kRoom || packet.length > kRoom - packet.offset) {
    ++end.set->counters[static_cast<std::size_t>(end.port)].overlong;
    return;
  }
  end.set->send(end.port,
                {reinterpret_cast<const std::byte*>(packet.pkt + packet.offset), packet.length});
}

void send(void* port, rte_swx_pkt* packet) {
  End& end = *static_cast<End*>(port);
  copy_out(end, *packet);
  rte_pktmbuf_free(static_cast<rte_mbuf*>(packet->handle));
}

void send_clone(void* port, rte_swx_pkt* packet, std::uint32_t) {
  copy_out(*static_cast<End*>(port), *packet);
}

void send_fast_clone(void* port, rte_swx_pkt* packet) { send_clone(port, packet, 0); }

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
  check(rte_swx_pipeline_table_config(pipeline, table.name.c_str(), &params, nullptr, nullptr,
                                      table.size),
        "table '" + table.name + "'");
}

}  // namespace

struct Pipeline::Ends {
  rte_mempool* buffers = nullptr;  // given back with DPDK's environment
  std::vector<End> all;
  End nowhere;
};

Pipeline::Pipeline(const Spec& spec, PortSet& ports) : ends_(std::make_unique<Ends>()) {
  check(rte_swx_pipeline_config(&pipeline_, "ghostrank", kAnyNumaNode), "a pipeline");
  try {
    configure_ports(ports);
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

void Pipeline::configure_ports(PortSet& ports) {
  rte_swx_port_in_ops in{make_end, free_end, receive, read_statistics_in};
  rte_swx_port_out_ops out{make_end, free_end,           send, send_fast_clone, send_clone,
                           flush,    read_statistics_out};
  check(rte_swx_pipeline_port_in_type_register(pipeline_, kPortType, &in), "a type of port");
  check(rte_swx_pipeline_port_out_type_register(pipeline_, kPortType, &out), "a type of port");
  constexpr unsigned kBuffers = 1024;
  ends_->buffers = rte_pktmbuf_pool_create("frames", kBuffers, 0, 0,
                                           RTE_PKTMBUF_HEADROOM + kFrameRoom, kAnyNumaNode);
  if (ends_->buffers == nullptr) throw std::runtime_error("DPDK has no memory for frames");
  ends_->nowhere = {&ports, ends_->buffers, -1};
  for (int p = 0; p < ports.count(); ++p) ends_->all.push_back({&ports, ends_->buffers, p});
  const auto count = static_cast<std::uint32_t>(ports.count());
  // Their number must be a power of two.
  for (std::uint32_t p = 0; p < std::bit_ceil(count); ++p) {
    End* end = p < count ? &ends_->all[p] : &ends_->nowhere;
    check(rte_swx_pipeline_port_in_config(pipeline_, p, kPortType, end),
          "port " + std::to_string(p));
  }
  // The last one is for mirroring sessions that lead nowhere; DPDK adds one for what is dropped.
  for (std::uint32_t p = 0; p <= count; ++p) {
    End* end = p < count ? &ends_->all[p] : &ends_->nowhere;
    check(rte_swx_pipeline_port_out_config(pipeline_, p, kPortType, end),
          "port " + std::to_string(p));
  }
  rte_swx_pipeline_mirroring_params mirroring{kMirrorSlots, kMirrorSessions};
  check(rte_swx_pipeline_mirroring_config(pipeline_, &mirroring), "mirroring");
}

void Pipeline::configure(const Spec& spec) {
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
  for (std::uint32_t session = 0; session < kMirrorSessions; ++session) {
    const auto count = static_cast<std::uint32_t>(ports);
    rte_swx_pipeline_mirroring_session_params params{};
    params.port_id = session < count ? session : count;
    check(rte_swx_ctl_pipeline_mirroring_session_set(pipeline_, session, &params),
          "mirroring session " + std::to_string(session));
  }
}

void Pipeline::add(const std::vector<TableEntry>& entries) {
  for (const TableEntry& e : entries) {
    int blank = 0;
    rte_swx_table_entry* entry =
        rte_swx_ctl_pipeline_table_entry_read(control_, e.table.c_str(), e.text.c_str(), &blank);
    const bool added = entry != nullptr &&
                       rte_swx_ctl_pipeline_table_entry_add(control_, e.table.c_str(), entry) == 0;
    if (entry != nullptr) {
      std::free(entry->key);
      std::free(entry->key_mask);
      std::free(entry->action_data);
      std::free(entry);
    }
    if (!added) {
      rte_swx_ctl_pipeline_abort(control_);
      throw std::runtime_error("table '" + e.table + "' does not take the entry: " + e.text);
    }
  }
  check(rte_swx_ctl_pipeline_commit(control_, 1), "to commit table entries");
}

void Pipeline::run(std::uint32_t instructions) {
  rte_swx_pipeline_run(pipeline_, instructions);
  rte_swx_pipeline_flush(pipeline_);
}

}  // namespace ghostrank::dpdk
