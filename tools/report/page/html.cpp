#include "tools/report/page/html.h"

#include "tools/report/page/style.h"
#include "tools/text/markup.h"

namespace ghostrank {
namespace {

std::string opened(std::string_view name, std::string_view kind) {
  std::string tag = "<" + std::string(name);
  if (!kind.empty()) tag += " class=\"" + std::string(kind) + "\"";
  return tag + ">";
}

std::string_view kind_of(const Column& column) {
  return column.align == Align::right ? "number" : "";
}

}  // namespace

std::string element(std::string_view name, std::string_view text, std::string_view kind) {
  return opened(name, kind) + escaped(text) + "</" + std::string(name) + ">";
}

std::string html_table(const Table& table) {
  if (table.rows.empty()) return "";
  std::string html = "<div class=\"wide\"><table>\n<thead><tr>";
  for (const Column& column : table.columns) html += element("th", column.name, kind_of(column));
  html += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      html += element("td", i < row.size() ? row[i] : "", kind_of(table.columns[i]));
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string html_facts(const std::vector<Fact>& facts) {
  if (facts.empty()) return "";
  std::string html = "<table class=\"facts\"><tbody>\n";
  for (const Fact& fact : facts)
    html += "<tr>" + element("th", fact.name) + element("td", fact.value) + "</tr>\n";
  return html + "</tbody></table>\n";
}

std::string html_list(const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string html = "<ul>\n";
  for (const std::string& line : lines) html += element("li", line) + "\n";
  return html + "</ul>\n";
}

std::string section(std::string_view title, const std::string& html) {
  return html.empty() ? "" : "<section>\n" + element("h2", title) + "\n" + html + "</section>\n";
}

std::string figure(std::string_view caption, const std::string& html) {
  if (html.empty()) return "";
  return "<figure>" + html + element("figcaption", caption) + "</figure>\n";
}

std::string folded(std::string_view title, const std::string& html) {
  if (html.empty()) return "";
  return "<details>" + element("summary", title) + "\n" + html + "</details>\n";
}

std::string html_page(std::string_view title, const std::string& html) {
  return "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
         "<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" content=\"width=device-width\"/>\n" +
         element("title", title) + "\n<style>\n" + std::string(kStyle) +
         "</style>\n</head>\n<body>\n<main>\n" + html + "</main>\n</body>\n</html>\n";
}

}  // namespace ghostrank
