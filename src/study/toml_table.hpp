// TomlTable: reads a TOML table's keys with their kinds, and complains with file, line and the nearest known name. Used
// by StudyFile; the one place of src/study that sees toml++'s nodes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/toml.hpp"
#include "base/units.hpp"

namespace ergometer {

// A value as the text that was written: 16 -> "16", true -> "true". nullopt for a table or a list.
[[nodiscard]] std::optional<std::string> text_of(const toml::node& node);

class TomlTable {
 public:
  // `name` for messages: "[runs]", or "the file".
  TomlTable(const toml::table& table, std::string source, std::string name, std::optional<Error>& first)
      : table_(table), source_(std::move(source)), name_(std::move(name)), first_(first) {}

  [[nodiscard]] const toml::table& toml() const { return table_; }
  [[nodiscard]] const std::string& source() const { return source_; }
  // The first complaint of all is kept.
  void complain(int line, const std::string& what, const std::string& remedy);
  [[nodiscard]] static int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }
  // Complains about a key that is not among these.
  void only(const std::vector<std::string>& known);

  // Each leaves `out` as it is without the key, and complains about a value of another kind, with `remedy`.
  void read(const char* key, std::string& out);
  void read(const char* key, bool& out);
  void read(const char* key, int& out, int least);
  void read(const char* key, std::optional<double>& out);
  void read(const char* key, double& out, double low, double high);
  void read(const char* key, Nanos& out);
  void read(const char* key, std::optional<Nanos>& out);
  // "2%" as 0.02, or a number.
  void read_share(const char* key, double& out);
  void read(const char* key, std::vector<std::string>& out);
  // Calls `use` with the table under `key`, if there is one.
  void table(const char* key, const std::function<void(TomlTable&)>& use);

 private:
  const toml::table& table_;
  std::string source_, name_;
  std::optional<Error>& first_;
};

// The place in `words` of the word under `key`, or `otherwise`; another word is a complaint.
[[nodiscard]] std::size_t read_choice(TomlTable& table, const char* key, const std::vector<std::string>& words,
                                      std::size_t otherwise);

}  // namespace ergometer
