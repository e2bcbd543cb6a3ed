#include "store/sample_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/number.hpp"
#include "store/infer.hpp"
#include "store/row_parser.hpp"
#include "store/zstd_frames.hpp"

namespace ergometer {
namespace {

constexpr const char* kGapRemedy =
    "the time without rows counts as a gap; copy the file again if the original is whole";

std::vector<std::string> expected_columns(const SensorInfo* info) {
  if (!info) return {};
  std::vector<std::string> names{"t_ns"};
  if (!info->own_time) names.push_back("read_ns");
  for (const Channel& channel : info->channels) names.push_back(channel.column);
  return names;
}

void parse_frames(std::string_view content, RowParser& parser, const std::string& source,
                  std::vector<Warning>& warnings) {
  std::size_t frames = 0, bytes = 0;
  std::uint64_t first = 0;
  read_frames(content,
              {[&](std::string_view text) { parser.feed(text); }, [&] { parser.keep(); },
               [&](std::uint64_t offset, std::uint64_t skipped, bool cut_off) {
                 parser.forget();
                 if (cut_off) {
                   warnings.push_back(
                       {"samples-cut",
                        fmt::format("{}: the last frame is cut off; its {} bytes are left out", source, skipped), ""});
                   return;
                 }
                 if (frames++ == 0) first = offset;
                 bytes += skipped;
               }});
  if (frames > 0)
    warnings.push_back({"samples-damaged",
                        fmt::format("{}: {} damaged place{}, the first at byte {}; {} of {} bytes are left out", source,
                                    frames, frames == 1 ? "" : "s", first, bytes, content.size()),
                        kGapRemedy});
}

void warn_about_rows(const RowParser& parser, const std::string& source, std::vector<Warning>& warnings) {
  if (parser.bad_rows.rows > 0)
    warnings.push_back(
        {"rows-skipped",
         fmt::format("{}:{}: not a row of {} numbers; {} such row{} left out", source, parser.bad_rows.first_line,
                     parser.header().size(), parser.bad_rows.rows, parser.bad_rows.rows == 1 ? "" : "s"),
         "give each row one number a column; a missing value is an empty field"});
  if (parser.not_finite.rows > 0)
    warnings.push_back(
        {"values-not-finite",
         fmt::format("{}:{}: nan or inf taken as missing, {} time{}", source, parser.not_finite.first_line,
                     parser.not_finite.rows, parser.not_finite.rows == 1 ? "" : "s"),
         "leave the field of a missing value empty"});
}

template <class T>
void reorder(std::vector<T>& values, const std::vector<std::size_t>& order) {
  if (values.empty()) return;
  std::vector<T> sorted;
  sorted.reserve(order.size());
  for (const std::size_t i : order) sorted.push_back(values[i]);
  values = std::move(sorted);
}

// Sorts rows by time; of rows of one time the first in the file stays.
void sort_rows(RowParser& rows, const std::string& source, std::vector<Warning>& warnings) {
  if (rows.ascending) return;
  const auto& t = rows.t_ns;
  std::size_t late = 0;
  for (std::size_t i = 1; i < t.size(); ++i) late += t[i] < t[i - 1] ? 1 : 0;
  std::vector<std::size_t> order(t.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return t[a] < t[b]; });
  const auto end = std::unique(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return t[a] == t[b]; });
  const auto twice = static_cast<std::size_t>(order.end() - end);
  order.erase(end, order.end());
  reorder(rows.read_ns, order);
  for (auto& column : rows.columns) {
    reorder(column.values, order);
    reorder(column.present, order);
  }
  reorder(rows.t_ns, order);
  if (late + twice > 0)
    warnings.push_back({"rows-out-of-order",
                        fmt::format("{}: sorted by time ({} step{} back); {} row{} of a time that was already there "
                                    "left out",
                                    source, late, late == 1 ? "" : "s", twice, twice == 1 ? "" : "s"),
                        ""});
}

// The channels of the file's columns, as node.json describes them or else inferred.
SensorInfo info_of(const RowParser& rows, const std::string& sensor, const SensorInfo* info, const std::string& source,
                   std::vector<Warning>& warnings) {
  SensorInfo out;
  if (info)
    out = *info;
  else
    out.interface = "file";
  out.name = sensor;
  out.channels.clear();
  out.own_time = !rows.has_read_ns();
  const auto& header = rows.header();
  const auto first = header.size() - rows.columns.size();
  for (std::size_t i = first; i < header.size(); ++i) {
    const Channel* known = nullptr;
    if (info)
      for (const Channel& channel : info->channels)
        if (channel.column == header[i]) known = &channel;
    out.channels.push_back(known ? *known : infer_channel(sensor, header[i]));
  }
  if (info)
    for (const Channel& channel : info->channels)
      if (std::find(header.begin(), header.end(), channel.column) == header.end())
        warnings.push_back({"column-missing",
                            fmt::format("{} has no column {}, which node.json describes", source, channel.column), ""});
  return out;
}

}  // namespace

Result<Trace> parse_samples(std::string_view content, bool compressed, const std::string& sensor,
                            const SensorInfo* info, const std::string& source, std::vector<Warning>& warnings) {
  RowParser rows(expected_columns(info));
  if (compressed) {
    parse_frames(content, rows, source, warnings);
  } else {
    rows.feed(content);
  }
  rows.finish();
  if (rows.header().empty()) {
    // A file whose only frame is damaged has no rows, which the warnings say; a node.json still tells its columns.
    if (info) return Trace::empty(*info);
    return fail(ErrorCode::corrupt, fmt::format("{} has no header", source),
                "its first line must be t_ns,COLUMN,... (docs/run-format.md)");
  }
  warn_about_rows(rows, source, warnings);
  sort_rows(rows, source, warnings);
  Trace trace = Trace::empty(info_of(rows, sensor, info, source, warnings));
  trace.t_ns = std::move(rows.t_ns);
  trace.read_ns = std::move(rows.read_ns);
  for (std::size_t i = 0; i < rows.columns.size(); ++i)
    trace.columns[i] = Column(std::move(rows.columns[i].values), std::move(rows.columns[i].present));
  return trace;
}

std::optional<std::int64_t> last_sample_ns(std::string_view content, bool compressed) {
  std::string tail;
  if (compressed) {
    tail = last_frame_text(content);
  } else {
    tail = content.substr(content.size() > 65536 ? content.size() - 65536 : 0);
  }
  while (!tail.empty()) {
    if (tail.back() == '\n' || tail.back() == '\r') {
      tail.pop_back();
      continue;
    }
    const auto begin = tail.rfind('\n');
    const auto line = std::string_view(tail).substr(begin == std::string::npos ? 0 : begin + 1);
    if (const auto t = parse_int(line.substr(0, line.find(',')))) return t;
    if (begin == std::string::npos) break;
    tail.resize(begin);
  }
  return std::nullopt;
}

}  // namespace ergometer
