#include "device/replay/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/csv.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer {
namespace {

// "gpu0-samples" is of gpu/0; any other name is its own domain.
std::string domain_of(std::string_view stem) {
  if (!stem.starts_with("gpu")) return std::string(stem);
  const auto digits = stem.substr(3, stem.find_first_not_of("0123456789", 3) - 3);
  return digits.empty() ? std::string(stem) : "gpu/" + std::string(digits);
}

Channel channel_of(const std::string& column, std::string_view stem) {
  Channel channel;
  channel.column = column;
  channel.domain = domain_of(stem);
  channel.device = std::string(stem);
  channel.scope = channel.domain.starts_with("gpu/") ? Scope::gpu : Scope::node;
  channel.note = "replayed from a recording";
  if (column.ends_with("_w")) {
    channel.quantity = Quantity::power;
    channel.unit = "W";
    channel.method = stem.ends_with("-samples") ? Method::samples : Method::integral;
  } else if (column.ends_with("_j")) {
    channel.quantity = Quantity::energy;
    channel.unit = "J";
    channel.behaviour = Behaviour::counter;
    channel.method = Method::counter;
  } else if (column.ends_with("_ratio")) {
    channel.quantity = Quantity::ratio;
    channel.unit = "1";
  } else if (column.ends_with("_bytes")) {
    channel.quantity = Quantity::bytes;
    channel.unit = "B";
  }
  return channel;
}

struct RecordedRow {
  Nanos since_first;
  std::vector<std::optional<double>> values;
};

struct Recording {
  std::vector<std::string> columns;
  std::vector<RecordedRow> rows;
};

Result<Recording> parse_recording(const std::string& text, const std::string& file) {
  const auto table = parse_csv(text, file);
  if (!table) return tl::unexpected(table.error());
  const auto time = table->column("t_ns");
  if (!time)
    return fail(ErrorCode::invalid_argument, fmt::format("{} has no column t_ns", file),
                "the first row names the columns: t_ns,power_w,...; see docs/run-format.md");
  const auto read_width = table->column("read_ns");
  Recording recording;
  std::vector<std::size_t> value_columns;
  for (std::size_t c = 0; c < table->header.size(); ++c) {
    if (c == *time || c == read_width) continue;
    value_columns.push_back(c);
    recording.columns.push_back(table->header[c]);
  }
  std::int64_t first_ns = 0;
  for (std::size_t r = 0; r < table->rows.size(); ++r) {
    const auto& fields = table->rows[r];
    const auto t_ns = parse_int(fields[*time]);
    if (!t_ns) return fail(ErrorCode::corrupt, fmt::format("{}:{}: t_ns is not a number", file, table->lines[r]));
    if (r == 0) first_ns = *t_ns;
    RecordedRow row{Nanos(*t_ns - first_ns), {}};
    for (const auto c : value_columns) {
      const auto value = parse_double(fields[c]);
      if (!value && !trim(fields[c]).empty())
        return fail(ErrorCode::corrupt, fmt::format("{}:{}: {} is \"{}\", not a number", file, table->lines[r],
                                                    table->header[c], fields[c]));
      row.values.push_back(value);
    }
    recording.rows.push_back(std::move(row));
  }
  if (recording.rows.empty()) return fail(ErrorCode::invalid_argument, fmt::format("{} holds no row", file));
  std::stable_sort(recording.rows.begin(), recording.rows.end(),
                   [](const auto& a, const auto& b) { return a.since_first < b.since_first; });
  return recording;
}

class ReplaySensor final : public Sensor {
 public:
  ReplaySensor(SensorInfo info, std::vector<RecordedRow> rows, std::shared_ptr<Clock> clock)
      : Sensor(std::move(info)), rows_(std::move(rows)), clock_(std::move(clock)), start_(clock_->now()) {}

  // Hands out every recorded row whose time has come.
  Result<void> read(Readings& out) override {
    const Nanos elapsed = clock_->now() - start_;
    for (; next_ < rows_.size() && rows_[next_].since_first <= elapsed; ++next_)
      out.add_at(start_ + rows_[next_].since_first, rows_[next_].values);
    return {};
  }

 private:
  std::vector<RecordedRow> rows_;
  std::size_t next_ = 0;
  std::shared_ptr<Clock> clock_;
  MonoTime start_;
};

}  // namespace

Result<void> discover_replay(const Host& host, const std::string& file, Discovery& out) {
  constexpr std::size_t kMaxBytes = 1u << 30;
  const auto text = read_file(file, kMaxBytes);
  if (!text) return tl::unexpected(text.error());
  auto recording = parse_recording(*text, file);
  if (!recording) return tl::unexpected(recording.error());

  const auto stem = std::filesystem::path(file).stem().string();
  SensorInfo info{file_name_of(stem), "replay", {}, std::chrono::milliseconds(500), true, "replayed from " + file};
  const bool taken = std::any_of(out.sensors.begin(), out.sensors.end(),
                                 [&](const auto& sensor) { return sensor->info().name == info.name; });
  if (taken)
    return fail(ErrorCode::exists, fmt::format("two sensors are named \"{}\"", info.name),
                "rename the recording's file: its name is the sensor's name");
  for (const auto& column : recording->columns) info.channels.push_back(channel_of(column, stem));
  out.sensors.push_back(std::make_shared<ReplaySensor>(std::move(info), std::move(recording->rows), host.clock));
  return {};
}

}  // namespace ergometer
