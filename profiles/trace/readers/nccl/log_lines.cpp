#include "profiles/trace/readers/nccl/log_lines.h"

#include <cctype>
#include <charconv>
#include <optional>

namespace ghostrank {
namespace {

constexpr std::string_view kMark = " NCCL INFO ", kBlank = " \t\r";

std::optional<std::int64_t> id_in(std::string_view digits) {
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  if (error != std::errc() || end != digits.data() + digits.size() || id < 0) return std::nullopt;
  return id;
}

// The last host:pid:tid of a text: a timestamp of that form may precede it.
struct Origin {
  std::string_view host;  // with what stands directly before it
  std::int64_t pid = 0, tid = 0;
};
std::optional<Origin> origin_in(std::string_view text) {
  while (true) {
    const std::size_t last = text.find_last_not_of(kBlank);
    if (last == std::string_view::npos) return std::nullopt;
    const std::size_t blank = text.find_last_of(kBlank, last);
    const std::size_t first = blank == std::string_view::npos ? 0 : blank + 1;
    const std::string_view word = text.substr(first, last + 1 - first);
    text = text.substr(0, first);
    const std::size_t thread = word.rfind(':');
    if (thread == std::string_view::npos || thread == 0) continue;
    const std::size_t process = word.rfind(':', thread - 1);
    if (process == std::string_view::npos || process == 0) continue;
    const auto pid = id_in(word.substr(process + 1, thread - process - 1));
    const auto tid = id_in(word.substr(thread + 1));
    if (pid && tid) return Origin{word.substr(0, process), *pid, *tid};
  }
}

bool may_be_in_a_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_';
}

}  // namespace

// The host of process `pid` at the end of `text`.
std::string_view NcclLogLines::host_in(std::string_view text, std::int64_t pid) {
  auto& known = hosts_of_[pid];
  if (known.contains(text)) return text;
  for (const std::string& host : known)
    if (text.ends_with(host)) return text.substr(text.size() - host.size());
  std::size_t first = text.size();
  while (first > 0 && may_be_in_a_name(text[first - 1])) --first;
  if (first < text.size()) text.remove_prefix(first);
  known.emplace(text);
  return text;
}

const std::vector<NcclLogRecord>& NcclLogLines::records_in(std::string_view line) {
  records_.clear();
  std::size_t from = 0;
  for (std::size_t mark; (mark = line.find(kMark, from)) != std::string_view::npos;) {
    NcclLogRecord record;
    std::size_t begin = mark;  // of its origin
    if (const auto origin = origin_in(line.substr(from, mark - from))) {
      const std::string_view host = host_in(origin->host, origin->pid);
      record = {.named = true, .host = std::string(host), .pid = origin->pid, .tid = origin->tid};
      begin = static_cast<std::size_t>(host.data() - line.data());
    }
    if (!records_.empty()) {
      records_.back().body = line.substr(from, begin - from);
      records_.back().followed = true;
    }
    records_.push_back(std::move(record));
    from = mark + kMark.size();
  }
  if (!records_.empty()) records_.back().body = line.substr(from);
  return records_;
}

}  // namespace ghostrank
