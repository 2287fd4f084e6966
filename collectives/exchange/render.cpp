// See render.h.
#include "collectives/exchange/render.h"

#include <algorithm>
#include <array>

namespace ghostrank {
namespace {

constexpr std::size_t kColumns = 9;
using Row = std::array<std::string, kColumns>;

std::string text_of(const Peers& peers) {
  std::string text;
  for (const GroupRank peer : peers) {
    if (!text.empty()) text += ',';
    text += std::to_string(peer);
  }
  return text;
}

// Empty for the work buffer, where most elements lie.
std::string_view prefix_of(Buffer buffer) {
  switch (buffer) {
    case Buffer::work:
      return "";
    case Buffer::input:
      return "input ";
    case Buffer::scratch:
      return "scratch ";
    case Buffer::none:
      return "unread ";
  }
  return "";
}

std::string text_of(const Block& block, bool scattered) {
  if (scattered) return std::to_string(block.count) + " scattered";
  return std::string(prefix_of(block.buffer)) + '[' + std::to_string(block.offset) + ", " +
         std::to_string(block.offset + block.count) + ')';
}

// Bytes on the wire of all messages that the step sends to one peer.
std::uint64_t wire_bytes(const Schedule& schedule, const Step& step) {
  std::uint64_t bytes = 0;
  for (std::uint32_t s = 0; s < step.slices; ++s)
    bytes += message_bytes(schedule.protocol(), slice_of(step.send, step, s).count,
                           schedule.collective().element_bytes);
  return bytes;
}

Row row_of(const Schedule& schedule, int channel, int k, const Step& step) {
  Row row{std::to_string(channel), std::to_string(k)};
  if (!step.recv_from.empty()) {
    row[2] = text_of(step.recv_from);
    row[3] = step.on_recv == Combine::reduce ? "reduce" : "copy";
    row[4] = text_of(step.recv, step.scattered);
  }
  if (!step.send_to.empty()) {
    row[5] = text_of(step.send_to);
    row[6] = text_of(step.send, step.scattered);
    row[7] = std::to_string(wire_bytes(schedule, step));
  }
  row[8] = std::to_string(step.slices);
  return row;
}

std::string headline(const Schedule& schedule, GroupRank rank) {
  const Collective& c = schedule.collective();
  std::string text = std::string(name_of(c.func)) + ", rank " + std::to_string(rank) + " of " +
                     std::to_string(c.size) +
                     (is_ragged(c.func) ? ", counts" : ", count " + std::to_string(c.count)) +
                     " x " + std::to_string(c.element_bytes) + " bytes";
  if (c.func == Func::broadcast || c.func == Func::reduce)
    text += ", root " + std::to_string(c.root);
  if (schedule.protocol() != Protocol::simple)
    text += ", protocol " + std::string(name_of(schedule.protocol()));
  if (schedule.flow_control().credits > 0)
    text += ", credits " + std::to_string(schedule.flow_control().credits);
  if (schedule.flow_control().posting.needed()) text += ", data leaves for posted receives";
  return text + '\n';
}

// Right-aligned columns, as wide as their widest cell.
std::string aligned(const std::vector<Row>& rows) {
  std::array<std::size_t, kColumns> width{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < kColumns; ++i) width[i] = std::max(width[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kColumns; ++i)
      text += (i > 0 ? "  " : "") + std::string(width[i] - row[i].size(), ' ') + row[i];
    text += '\n';
  }
  return text;
}

void add(MessageRuns& runs, std::uint64_t bytes) {
  if (!runs.empty() && runs.back().first == bytes)
    ++runs.back().second;
  else
    runs.emplace_back(bytes, 1);
}

}  // namespace

std::string picture(const Schedule& schedule, GroupRank rank) {
  std::vector<Row> rows{
      {"channel", "step", "from", "does", "elements", "to", "elements", "bytes", "messages"}};
  for (int a = 0; a < schedule.actors(rank); ++a) {
    const Actor actor = schedule.actor(rank, a);
    for (int k = 0; k < actor.steps; ++k) {
      const Step step = schedule.step(rank, a, k);
      if (step.recv_from.empty() && step.send_to.empty()) continue;
      rows.push_back(row_of(schedule, actor.channel, k, step));
    }
  }
  return headline(schedule, rank) + aligned(rows);
}

RankMessages messages_of(const Schedule& schedule, GroupRank rank) {
  const auto bytes = [&](const Block& block) {
    return message_bytes(schedule.protocol(), block.count, schedule.collective().element_bytes);
  };
  RankMessages out;
  for (int a = 0; a < schedule.actors(rank); ++a) {
    const Actor actor = schedule.actor(rank, a);
    for (int k = 0; k < actor.steps; ++k) {
      const Step step = schedule.step(rank, a, k);
      for (std::uint32_t s = 0; s < step.slices; ++s) {
        for (const GroupRank peer : step.recv_from)
          add(out.recvs[{actor.channel, peer}], bytes(slice_of(step.recv, step, s)));
        for (const GroupRank peer : step.send_to)
          add(out.sends[{actor.channel, peer}], bytes(slice_of(step.send, step, s)));
      }
    }
  }
  return out;
}

}  // namespace ghostrank
