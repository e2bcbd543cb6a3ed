#include "load_lstm/series.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <string_view>

#include "core/csv.hpp"
#include "core/text.hpp"

namespace ergometer::workload::load_lstm {
namespace {

struct Columns {
  std::size_t time = 0;
  std::size_t city = 0;
  std::size_t load = 0;
};

Error at(const CsvReader& csv, std::string_view message, std::string hint = {}) {
  return {Fault::data, fmt::format("{}: {}", csv.where(), message), std::move(hint)};
}

// The first of the wanted names that the header has; otherwise an error that names the nearest column.
Result<std::size_t> find_column(const CsvReader& csv, const std::vector<std::string>& header, std::string_view what,
                                const std::vector<std::string_view>& wanted) {
  for (const std::string_view name : wanted) {
    for (std::size_t i = 0; i < header.size(); ++i) {
      if (lower(header[i]) == lower(name)) return i;
    }
  }
  return at(csv, fmt::format("no {} column ({})", what, fmt::join(wanted, ", ")),
            fmt::format("the first line must name the columns; it has {}; nearest is '{}'", fmt::join(header, ", "),
                        nearest(wanted.front(), header)));
}

Result<Columns> find_columns(const CsvReader& csv, const std::vector<std::string_view>& fields) {
  std::vector<std::string> header;
  for (const std::string_view field : fields) header.emplace_back(trim(field));
  const auto time = find_column(csv, header, "time", {"Time [s]", "Time", "Timestamp", "DateTime"});
  if (!time) return time.error();
  const auto city = find_column(csv, header, "city", {"City", "Country"});
  if (!city) return city.error();
  const auto load = find_column(csv, header, "load", {"Load [MWh]", "Load [MW]"});
  if (!load) return load.error();
  return Columns{*time, *city, *load};
}

bool is_missing(std::string_view load) {
  const std::string text = lower(load);
  return text.empty() || text == "nan" || text == "na" || text == "null";
}

// What is missing of one city so far.
struct Missing {
  std::int64_t absent = 0;  // hours without a row
  std::int64_t empty = 0;   // hours without a load
  std::string first;        // FILE:LINE
};

struct Reader {
  LoadData data;
  std::vector<Missing> missing;
  std::vector<std::int64_t> last_lines;
  std::map<std::string, std::size_t, std::less<>> index;
  bool strict = false;

  std::size_t city_of(const CsvReader& csv, std::string_view name, std::int64_t hour) {
    if (const auto known = index.find(name); known != index.end()) return known->second;
    index.emplace(name, data.cities.size());
    data.cities.push_back({std::string(name), csv.where(), hour, hour - 1, {}});
    missing.emplace_back();
    last_lines.push_back(0);
    return data.cities.size() - 1;
  }

  Result<Done> note(const CsvReader& csv, std::size_t city, std::int64_t& count, std::int64_t hours,
                    std::string_view what) {
    if (strict) {
      return at(csv, fmt::format("{}: {}", data.cities[city].name, what),
                "fill the gap, or leave --strict out: windows that touch a gap are then left out");
    }
    if (missing[city].first.empty()) missing[city].first = csv.where();
    count += hours;
    return Done{};
  }

  Result<Done> add(const CsvReader& csv, const Columns& columns, const std::vector<std::string_view>& fields) {
    const auto seconds = parse_time(fields[columns.time]);
    if (!seconds || *seconds % 3600 != 0) {
      return at(csv, fmt::format("'{}' is not the time of a whole hour", fields[columns.time]),
                "write 2019-01-31 23:00:00, or seconds since 1970");
    }
    const std::int64_t hour = *seconds / 3600;
    const std::string_view name = trim(fields[columns.city]);
    if (name.empty()) return at(csv, "the city is empty");
    const std::size_t number = city_of(csv, name, hour);
    City& city = data.cities[number];
    if (hour <= city.last_hour) {
      return at(
          csv,
          fmt::format("{}: the hour {} {}", city.name, format_time(*seconds),
                      hour == city.last_hour ? fmt::format("comes twice (before in line {})", last_lines[number])
                                             : fmt::format("comes after {} (line {})",
                                                           format_time(city.last_hour * 3600), last_lines[number])),
          "each city's hours must ascend, each once, without daylight-saving time");
    }
    const std::int64_t absent = hour - city.last_hour - 1;
    if (absent > 0) {
      auto noted = note(csv, number, missing[number].absent, absent,
                        fmt::format("{} hours are missing before {}", absent, format_time(*seconds)));
      if (!noted) return noted;
    }
    const bool continues =
        absent == 0 && !city.runs.empty() &&
        city.runs.back().first_hour + static_cast<std::int64_t>(city.runs.back().load.size()) == hour;
    city.last_hour = hour;
    last_lines[number] = csv.line();
    const std::string_view text = trim(fields[columns.load]);
    if (is_missing(text)) return note(csv, number, missing[number].empty, 1, "no load");
    const auto load = parse_number(text);
    if (!load) return at(csv, fmt::format("the load '{}' is not a number", text));
    if (!continues) city.runs.push_back({hour, {}});
    city.runs.back().load.push_back(*load);
    return Done{};
  }
};

}  // namespace

Result<LoadData> read_load(const std::string& path, bool strict) {
  auto csv = CsvReader::open(path);
  if (!csv) return csv.error();
  std::vector<std::string_view> fields;
  auto more = csv->next(fields);
  if (!more) return more.error();
  if (!*more) return Error{Fault::data, fmt::format("{}: the file is empty", path), {}};
  const auto columns = find_columns(*csv, fields);
  if (!columns) return columns.error();
  Reader reader;
  reader.data.file = path;
  reader.strict = strict;
  for (more = csv->next(fields); more && *more; more = csv->next(fields)) {
    if (auto added = reader.add(*csv, *columns, fields); !added) return added.error();
  }
  if (!more) return more.error();
  if (reader.data.cities.empty()) return Error{Fault::data, fmt::format("{}: no rows after the header", path), {}};
  for (std::size_t i = 0; i < reader.missing.size(); ++i) {
    const Missing& missing = reader.missing[i];
    if (missing.first.empty()) continue;
    reader.data.notes.push_back(fmt::format("{}: {} hours without a row and {} without a load, the first at {}",
                                            reader.data.cities[i].name, missing.absent, missing.empty, missing.first));
  }
  return std::move(reader.data);
}

}  // namespace ergometer::workload::load_lstm
