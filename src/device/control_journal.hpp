// The journal of changed controls: what was found before the first change and every value since, on disk before a
// device is touched. Lines are only appended; each is a step that is about to be done. Used by ControlGuard, its
// guardian and `ergometer control restore`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/control.hpp"

namespace ergometer {

struct JournalItem {
  std::string name, backend, device_id;
  ControlUnit unit = ControlUnit::watts;
  std::optional<ControlValue> found;  // unset: the device does not tell
  std::vector<ControlValue> set;      // every value that we may have set, and what it read back as
  bool settled = false;               // restored, or left to somebody else

  // Something else than what was found may be set.
  [[nodiscard]] bool changed() const;
};

struct Journal {
  int owner_pid = 0;
  std::string owner;  // "control set -- python3 train.py"
  std::int64_t since_unix_s = 0;
  std::string boot_id;  // "" if the kernel does not tell
  std::string nvml_path, site_command;
  std::vector<JournalItem> items;
  bool kept = false;  // the settings were meant to stay

  [[nodiscard]] bool changed() const;  // of any item
};

// A last line that was cut (the machine died while it was written) is left out: its step was never begun. Errors:
// corrupt.
[[nodiscard]] Result<Journal> parse_journal(std::string_view text);
// Errors also: permission_denied for a journal that belongs to neither root nor this user.
[[nodiscard]] Result<Journal> read_journal(const std::filesystem::path& file);

// Appends to the journal, every line on disk (fsync) before the call returns. Keeps `journal()` as what is written.
class JournalWriter {
 public:
  // A new file with `journal` as its content. Errors: exists; those of writing.
  [[nodiscard]] static Result<JournalWriter> create(const std::filesystem::path& file, Journal journal);
  // Goes on with one that another process began.
  [[nodiscard]] static Result<JournalWriter> open(const std::filesystem::path& file);
  JournalWriter(JournalWriter&& other) noexcept;
  JournalWriter& operator=(JournalWriter&&) = delete;
  ~JournalWriter();

  [[nodiscard]] const Journal& journal() const { return journal_; }
  [[nodiscard]] Result<void> will_set(std::size_t item, const ControlValue& value);
  [[nodiscard]] Result<void> settled(std::size_t item);
  [[nodiscard]] Result<void> keep();
  // Closes the journal: everything is as it was. The file is gone when the call returns.
  [[nodiscard]] Result<void> remove();

 private:
  JournalWriter(std::filesystem::path file, int fd, Journal journal)
      : file_(std::move(file)), fd_(fd), journal_(std::move(journal)) {}
  [[nodiscard]] Result<void> append(const std::string& line);

  std::filesystem::path file_;
  int fd_ = -1;
  Journal journal_;
};

}  // namespace ergometer
