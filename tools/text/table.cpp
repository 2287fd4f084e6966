// See table.h.
#include "tools/text/table.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

namespace ghostrank {
namespace {

constexpr int kColumnGap = 2;

std::string padding(int width) {
  return std::string(static_cast<std::size_t>(std::max(width, 0)), ' ');
}

void append_cell(std::string& line, std::string_view cell, int width, Align align,
                 const Paint& paint = {}) {
  const int missing = width - display_width(cell);
  if (align == Align::right) line += padding(missing);
  line += paint.bad(cell);
  if (align == Align::left) line += padding(missing);
}

void append_line(std::string& text, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + "\n";
}

std::string wrap(bool on, std::string_view code, std::string_view text) {
  if (!on) return printable(text);
  return "\x1b[" + std::string(code) + "m" + printable(text) + "\x1b[0m";
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0u) == 0x80u; }

char32_t first_character(std::string_view utf8) {
  const auto lead = static_cast<unsigned char>(utf8[0]);
  char32_t character = lead < 0xc0   ? lead
                       : lead < 0xe0 ? lead & 0x1fu
                       : lead < 0xf0 ? lead & 0xfu
                                     : lead & 7u;
  for (std::size_t i = 1; i < utf8.size() && continues(utf8[i]); ++i)
    character = character << 6 | (static_cast<unsigned char>(utf8[i]) & 0x3fu);
  return character;
}

using Ranges = std::initializer_list<std::pair<char32_t, char32_t>>;

bool is_in(const Ranges& ranges, char32_t c) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const auto& range) { return range.first <= c && c <= range.second; });
}

// How wide terminals show it: two columns of Chinese, Japanese, Korean, full-width forms and emoji,
// none of marks on the character before, and of what joins characters. Of the symbols below U+2E80,
// those are wide that Unicode shows as emoji (East Asian Width W).
int columns_of(char32_t c) {
  if (c < 0x300) return 1;
  const Ranges wide{
      {0x1100, 0x115f}, {0x231a, 0x231b}, {0x2329, 0x232a},   {0x23e9, 0x23ec},  {0x23f0, 0x23f0},
      {0x23f3, 0x23f3}, {0x25fd, 0x25fe}, {0x2614, 0x2615},   {0x2648, 0x2653},  {0x267f, 0x267f},
      {0x2693, 0x2693}, {0x26a1, 0x26a1}, {0x26aa, 0x26ab},   {0x26bd, 0x26be},  {0x26c4, 0x26c5},
      {0x26ce, 0x26ce}, {0x26d4, 0x26d4}, {0x26ea, 0x26ea},   {0x26f2, 0x26f3},  {0x26f5, 0x26f5},
      {0x26fa, 0x26fa}, {0x26fd, 0x26fd}, {0x2705, 0x2705},   {0x270a, 0x270b},  {0x2728, 0x2728},
      {0x274c, 0x274c}, {0x274e, 0x274e}, {0x2753, 0x2755},   {0x2757, 0x2757},  {0x2795, 0x2797},
      {0x27b0, 0x27b0}, {0x27bf, 0x27bf}, {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},  {0x2b55, 0x2b55},
      {0x2e80, 0x303e}, {0x3041, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},  {0xfe30, 0xfe6f},
      {0xff01, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};
  const Ranges none{{0x300, 0x36f}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}};
  return is_in(wide, c) ? 2 : is_in(none, c) ? 0 : 1;
}

}  // namespace

int display_width(std::string_view utf8) {
  int width = 0;
  for (std::size_t i = 0; i < utf8.size(); ++i)
    if (!continues(utf8[i])) width += columns_of(first_character(utf8.substr(i)));
  return width;
}

std::string printable(std::string_view utf8) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(utf8[i]); };
  std::string text;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    // U+0080 to U+009F take two bytes.
    const bool wide =
        byte(i) == 0xc2 && i + 1 < utf8.size() && byte(i + 1) >= 0x80 && byte(i + 1) < 0xa0;
    const bool narrow = (byte(i) < 0x20 && utf8[i] != '\n' && utf8[i] != '\t') || byte(i) == 0x7f;
    text += wide || narrow ? '?' : utf8[i];
    if (wide) ++i;
  }
  return text;
}

std::string render(const Table& table, int indent) {
  std::vector<int> widths;
  for (const Column& column : table.columns) widths.push_back(display_width(column.name));
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < std::min(row.size(), widths.size()); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  std::string text;
  const auto add = [&](const auto& cell_at, const Paint& last) {
    std::string line = padding(indent);
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (i > 0) line += padding(kColumnGap);
      append_cell(line, cell_at(i), widths[i], table.columns[i].align,
                  i + 1 == widths.size() ? last : Paint{});
    }
    append_line(text, line);
  };
  add([&](std::size_t i) { return std::string_view(table.columns[i].name); }, {});
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const auto& row = table.rows[r];
    const bool bad = std::binary_search(table.bad.begin(), table.bad.end(), r);
    add([&](std::size_t i) { return i < row.size() ? std::string_view(row[i]) : ""; },
        bad ? table.paint : Paint{});
  }
  return text;
}

std::string render(const std::vector<Fact>& facts, int indent) {
  int width = 0;
  for (const Fact& fact : facts) width = std::max(width, display_width(fact.name));
  std::string text;
  for (const Fact& fact : facts) {
    std::string line = padding(indent);
    append_cell(line, fact.name, width + kColumnGap, Align::left);
    append_line(text, line + printable(fact.value));
  }
  return text;
}

std::string Paint::bold(std::string_view text) const { return wrap(on, "1", text); }
std::string Paint::dim(std::string_view text) const { return wrap(on, "2", text); }
std::string Paint::good(std::string_view text) const { return wrap(on, "1;32", text); }
std::string Paint::bad(std::string_view text) const { return wrap(on, "1;31", text); }

bool is_terminal(int file_descriptor) {
  // Open MPI gives its processes terminals and pipes their output on, so isatty() alone would take
  // a pipe for a terminal.
  const bool forwarded = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
  return !forwarded && isatty(file_descriptor) == 1;
}

bool is_smart_terminal(int file_descriptor) {
  const char* term = std::getenv("TERM");
  return is_terminal(file_descriptor) && (term == nullptr || std::string_view(term) != "dumb");
}

int terminal_width(int file_descriptor) {
  constexpr int kUsual = 80;
  winsize size{};
  return ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

Paint paint_for(int file_descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  return {is_smart_terminal(file_descriptor) && (no_color == nullptr || *no_color == '\0')};
}

}  // namespace ghostrank
