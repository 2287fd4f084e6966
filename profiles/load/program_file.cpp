#include "profiles/load/program_file.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "profiles/error.h"
#include "profiles/input/keys.h"
#include "profiles/input/quantity.h"
#include "profiles/load/program_text.h"
#include "profiles/workload/rank_runs.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMaxKinds = 1000, kMaxRoles = 65'536;

const YamlValue& child(const YamlValue& map, const char* key, YamlValue::Kind kind,
                       const char* form) {
  const YamlValue* value = map.find(key);
  if (!value) fail(map.mark, std::string("the program has no ") + key + "; write " + form);
  if (value->kind != kind)
    fail(value->mark, std::string(key) + " is " + description(*value) + "; write " + form);
  return *value;
}

void refuse_unknown(const YamlValue& map, std::initializer_list<std::string_view> known) {
  for (const YamlValue& one : map.children)
    if (std::find(known.begin(), known.end(), one.key) == known.end())
      fail(one.key_mark, "unknown key " + quote(one.key) + " in a program");
}

double amount(const YamlValue& program, const char* key) {
  const YamlValue* value = program.find(key);
  if (!value) return 0;
  const auto number = parse_number(value->text);
  if (!value->is_scalar() || !number || !(*number >= 0))
    fail(value->mark, std::string(key) + ": " + description(*value) + " is no number from 0 on");
  return *number;
}

std::vector<WorldRank> ranks_of(const YamlValue& value, int ranks) {
  const auto list = parse_runs(value.text, ranks);
  if (!value.is_scalar() || !list)
    fail(value.mark, description(value) + " is no list of ranks below " + std::to_string(ranks) +
                         "; write runs such as 0-7 or 0-56/8");
  return *list;
}

void read_groups(const YamlValue& groups, Workload& out) {
  if (groups.children.size() > kMaxKinds)
    fail(groups.mark, "more than " + std::to_string(kMaxKinds) + " kinds of group");
  for (const YamlValue& kind : groups.children) {
    const auto is_blank = [](char c) { return static_cast<unsigned char>(c) <= ' '; };
    if (kind.key.empty() || std::any_of(kind.key.begin(), kind.key.end(), is_blank))
      fail(kind.key_mark, quote(kind.key) + " cannot name a group; use a word without blanks");
    if (!kind.is_list()) fail(kind.mark, "a kind of group is a list of lists of ranks, as [0-7]");
    VectorBy<WorldRank, bool> seen(out.ranks);
    for (const YamlValue& one : kind.children) {
      Group group{static_cast<std::uint16_t>(out.group_names.size()), ranks_of(one, out.ranks)};
      for (const WorldRank rank : group.members) {
        if (seen[rank])
          fail(one.mark, "rank " + to_string(rank) + " is in two places of group " + kind.key +
                             "; a rank is in one communicator of a kind");
        seen[rank] = true;
      }
      out.groups.push_back(std::move(group));
    }
    out.group_names.push_back(kind.key);
  }
}

void read_counts(const YamlValue& program, Workload& out) {
  const YamlValue* lists = program.find("counts");
  if (!lists) return;
  if (!lists->is_list()) fail(lists->mark, "counts is a list of lists of elements, as [[5, 0]]");
  for (const YamlValue& one : lists->children) {
    if (!one.is_list())
      fail(one.mark, "counts has " + description(one) +
                         " for a list of elements; write a list of lists, as [[5, 0]]");
    std::vector<std::uint64_t> counts;
    for (const YamlValue& value : one.children) {
      const auto number = parse_integer(value.text);
      if (!number || *number < 0 || *number > (std::int64_t{1} << 40))
        fail(value.mark, description(value) + " is no number of elements from 0 to 2^40");
      counts.push_back(static_cast<std::uint64_t>(*number));
    }
    out.counts.push_back(std::make_shared<const std::vector<std::uint64_t>>(std::move(counts)));
  }
}

Program read_streams(const YamlValue& streams, Workload& workload) {
  if (!streams.is_map() || streams.children.empty())
    fail(streams.mark, "an iteration is a mapping from streams to their ops");
  Program out;
  for (const YamlValue& stream : streams.children) {
    if (!stream.is_scalar() && stream.kind != YamlValue::Kind::null)
      fail(stream.mark, "the ops of a stream are a block of text, one op a line");
    out.stream_names.push_back(stream.key);
    out.streams.emplace_back();
    read_ops(stream.text, stream.mark, workload.group_names, out, out.streams.size() - 1,
             workload.launches);
  }
  return out;
}

void read_roles(const YamlValue& roles, Workload& out) {
  constexpr std::uint16_t kNone = 0xffff;
  if (roles.children.size() >= kMaxRoles) fail(roles.mark, "too many roles");
  out.role_of.assign(out.ranks, kNone);
  for (const YamlValue& one : roles.children) {
    if (!one.is_map()) fail(one.mark, "a role is a mapping with name, ranks and iterations");
    refuse_unknown(one, {"name", "ranks", "iterations"});
    Role role{child(one, "name", YamlValue::Kind::scalar, "name: stage 0").text, {}};
    const YamlValue& players = child(one, "ranks", YamlValue::Kind::scalar, "ranks: 0-7");
    for (const WorldRank rank : ranks_of(players, out.ranks)) {
      std::uint16_t& of = out.role_of[rank];
      if (of != kNone) fail(players.mark, "rank " + to_string(rank) + " has a role already");
      of = static_cast<std::uint16_t>(out.roles.size());
    }
    const YamlValue& iterations =
        child(one, "iterations", YamlValue::Kind::list, "a list of mappings from streams to ops");
    for (const YamlValue& streams : iterations.children)
      role.iterations.push_back(read_streams(streams, out));
    if (role.iterations.empty()) fail(iterations.mark, "a role needs one iteration at least");
    out.roles.push_back(std::move(role));
  }
  const auto missing = std::find(out.role_of.begin(), out.role_of.end(), kNone);
  if (missing != out.role_of.end())
    fail(roles.mark, "rank " + std::to_string(missing - out.role_of.begin()) +
                         " has no role; every rank needs one");
}

std::uint64_t integer_of(const YamlValue& value, const char* what, std::uint64_t from,
                         std::uint64_t to) {
  const auto number = parse_integer(value.text);
  if (!value.is_scalar() || !number || *number < static_cast<std::int64_t>(from) ||
      *number > static_cast<std::int64_t>(to))
    fail(value.mark, std::string(what) + ": " + description(value) + " is no integer from " +
                         std::to_string(from) + " to " + std::to_string(to));
  return static_cast<std::uint64_t>(*number);
}

const YamlValue* list_in(const YamlValue& program, const char* key, const char* form) {
  const YamlValue* list = program.find(key);
  if (list && !list->is_list())
    fail(list->mark, std::string(key) + " is " + description(*list) + "; write " + form);
  return list;
}

// Which ranks store and load for the others, and in which iterations
// (profiles/planners/background/background.h).
void read_background_part(const YamlValue& program, Workload& out) {
  if (const YamlValue* servers = program.find("servers"))
    out.servers = static_cast<int>(
        integer_of(*servers, "servers", 0, static_cast<std::uint64_t>(out.ranks) - 1));
  if (const YamlValue* services = list_in(program, "services", "kinds of group, as [checkpoint]"))
    for (const YamlValue& one : services->children) {
      const auto& names = out.group_names;
      const auto at = std::find(names.begin(), names.end(), one.text);
      if (at == names.end())
        fail(one.mark, "services: there is no group " + description(one) + "; name one of groups");
      out.services.push_back(static_cast<std::uint16_t>(at - names.begin()));
    }
  std::size_t programs = 1;
  for (const Role& role : out.roles) programs = std::max(programs, role.iterations.size());
  if (const YamlValue* order = list_in(program, "order", "numbers of iterations, as [0, 1]"))
    for (const YamlValue& one : order->children)
      out.order.push_back(static_cast<std::uint32_t>(integer_of(one, "order", 0, programs - 1)));
  if (const YamlValue* cycle = program.find("cycle"))
    out.cycle = static_cast<std::uint32_t>(
        integer_of(*cycle, "cycle", 1, std::max<std::size_t>(1, out.order.size())));
}

// "20x30"
std::optional<TensorShape> shape_in(const std::string& text) {
  const std::size_t x = text.find('x');
  const auto rows = parse_integer(text.substr(0, x));
  const auto columns = parse_integer(x == text.npos ? "" : text.substr(x + 1));
  if (!rows || !columns || *rows < 1 || *columns < 1) return std::nullopt;
  return TensorShape{static_cast<std::uint64_t>(*rows), static_cast<std::uint64_t>(*columns)};
}

// Lines of TENSOR TYPE ELEMENTS [ROWS] [ROWSxCOLUMNS ...].
std::optional<CompressedTensor> compressed_in(const std::string& text) {
  std::vector<std::string> parts = words(text);
  std::vector<TensorShape> shapes;
  std::uint64_t of_shapes = 0;
  for (; parts.size() > 3 && parts.back().find('x') != std::string::npos; parts.pop_back()) {
    const auto shape = shape_in(parts.back());
    if (!shape) return std::nullopt;
    shapes.insert(shapes.begin(), *shape);
    of_shapes += shape->rows * shape->columns;
  }
  if (parts.size() != 3 && parts.size() != 4) return std::nullopt;
  const auto tensor = parse_integer(parts[0]), elements = parse_integer(parts[2]);
  const auto rows = parts.size() == 4 ? parse_integer(parts[3]) : std::optional<std::int64_t>(0);
  const bool known = parts[1] == "float32" || parts[1] == "bfloat16";
  if (!tensor || !elements || !rows || !known || *tensor < 1 || *tensor >= kSecondRound ||
      *elements < 1 || *rows < 0 || *rows > *elements)
    return std::nullopt;
  if (!shapes.empty() && of_shapes != static_cast<std::uint64_t>(*elements)) return std::nullopt;
  for (const TensorShape& shape : shapes)  // a product may have wrapped around
    if (shape.rows > static_cast<std::uint64_t>(*elements) / shape.columns) return std::nullopt;
  return CompressedTensor{static_cast<std::uint32_t>(*tensor),
                          parts[1] == "float32" ? DataType::float32 : DataType::bfloat16,
                          static_cast<std::uint64_t>(*elements), static_cast<std::uint64_t>(*rows),
                          std::move(shapes)};
}

void read_compressed(const YamlValue& program, Workload& out) {
  const char* form = "lines of TENSOR TYPE ELEMENTS [ROWS] [ROWSxCOLUMNS ...], as [1 float32 1000]";
  const YamlValue* list = list_in(program, "compressed", form);
  if (!list) return;
  for (const YamlValue& one : list->children) {
    const auto read = one.is_scalar() ? compressed_in(one.text) : std::nullopt;
    if (!read) fail(one.mark, "compressed: " + description(one) + " is none of " + form);
    out.compressed.push_back(*read);
  }
}

// Checks of the ops against their communicators, for which one line is not enough.
class OpCheck {
 public:
  OpCheck(const Workload& workload, const Mark& mark)
      : workload_(workload),
        mark_(mark),
        sizes_(workload.group_names.size()),
        members_(workload.group_names.size(), std::vector<std::size_t>(workload.roles.size())),
        players_(workload.roles.size()) {
    for (const Group& group : workload.groups) {
      sizes_[group.kind].insert(static_cast<int>(group.members.size()));
      for (const WorldRank rank : group.members) ++members_[group.kind][workload.role_of[rank]];
    }
    for (const std::uint16_t role : workload.role_of) ++players_[role];
  }

  void run() const {
    for (std::size_t r = 0; r < workload_.roles.size(); ++r)
      for (const Program& program : workload_.roles[r].iterations)
        for (const auto& stream : program.streams)
          for (const Op& op : stream)
            if (op.kind == Op::Kind::collective || op.kind == Op::Kind::send ||
                op.kind == Op::Kind::recv)
              check(r, op);
  }

 private:
  void check(std::size_t role, const Op& op) const {
    const std::string where =
        "role " + workload_.roles[role].name + ", group " + workload_.group_names[op.group] + ": ";
    if (members_[op.group][role] != players_[role])
      fail(mark_, where + "not every rank of the role is in such a communicator; add it there");
    for (const int size : sizes_[op.group]) {
      const bool collective = op.kind == Op::Kind::collective;
      if (!collective && op.peer % size == 0)
        fail(mark_, where + "an offset of " + std::to_string(op.peer) + " in a communicator of " +
                        std::to_string(size) + " is the rank itself; name another member");
      if (collective && exchanges_payloads(op.func) && op.tensor != 0 &&
          !compressed_tensor(workload_, op))
        fail(mark_, where + (op.func == Func::all_gather ? "an " : "a call of ") +
                        std::string(name_of(op.func)) + " names tensor " +
                        std::to_string(op.tensor) +
                        ", which is not compressed; list it under compressed, or leave out ~");
      if (collective && op.peer >= size)
        fail(mark_, where + "there is no root " + std::to_string(op.peer) +
                        " in a communicator of " + std::to_string(size));
      if (collective && is_ragged(op.func) &&
          (op.counts >= workload_.counts.size() ||
           workload_.counts[op.counts]->size() != counts_needed(op.func, size)))
        fail(mark_, where + "list #" + std::to_string(op.counts) + " of counts does not have the " +
                        std::to_string(counts_needed(op.func, size)) + " counts that a " +
                        std::string(name_of(op.func)) + " of " + std::to_string(size) +
                        " ranks takes");
    }
  }

  const Workload& workload_;
  const Mark& mark_;
  std::vector<std::set<int>> sizes_;               // of the communicators of each kind
  std::vector<std::vector<std::size_t>> members_;  // by kind and role
  std::vector<std::size_t> players_;               // by role
};

}  // namespace

Workload read_program(const YamlValue& program) {
  if (!program.is_map())
    fail(program.mark,
         "a program is a mapping with ranks, groups and roles; found " + description(program));
  refuse_unknown(program,
                 {"schema", "ranks", "samples_per_iteration", "flops_per_iteration", "groups",
                  "counts", "compressed", "servers", "services", "order", "cycle", "roles"});
  const YamlValue& ranks = child(program, "ranks", YamlValue::Kind::scalar, "ranks: 16");
  const auto number = parse_integer(ranks.text);
  if (!number || *number < 1 || *number > kMaxRanks)
    fail(ranks.mark,
         quote(ranks.text) + " is no number of ranks from 1 to " + std::to_string(kMaxRanks));
  Workload out;
  out.ranks = static_cast<int>(*number);
  out.samples_per_iteration = amount(program, "samples_per_iteration");
  out.flops_per_iteration = amount(program, "flops_per_iteration");
  read_groups(child(program, "groups", YamlValue::Kind::map, "groups: {dp: [0-7]}"), out);
  read_counts(program, out);
  read_roles(child(program, "roles", YamlValue::Kind::list, "a list of roles"), out);
  read_background_part(program, out);
  read_compressed(program, out);
  OpCheck(out, program.mark).run();
  return out;
}

std::shared_ptr<const Workload> take_program(YamlValue& job, const std::string& file,
                                             const std::string& near) {
  YamlValue* program = job.find("program");
  if (!program || program->kind == YamlValue::Kind::null) return nullptr;
  std::string path = file;
  YamlValue other;
  const YamlValue* from = program;
  if (program->is_scalar()) {
    path = program->text;
    if (!std::filesystem::exists(path)) path = (std::filesystem::path(near) / path).string();
    if (!std::filesystem::exists(path))
      fail(program->mark, "program: there is no file " + quote(program->text) +
                              "; write one with 'ghostrank plan JOB --programs FILE'");
    other = parse_yaml_file(path);
    from = other.find("program") ? other.find("program") : &other;
  }
  auto workload = std::make_shared<const Workload>(read_program(*from));
  program->kind = YamlValue::Kind::scalar;
  program->children.clear();
  program->quoted = true;
  program->text = std::filesystem::absolute(path).lexically_normal().string();
  return workload;
}

}  // namespace ghostrank
