#include "store/run_writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <map>
#include <mutex>
#include <vector>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "store/marker_log.hpp"
#include "store/run_join.hpp"
#include "store/run_json.hpp"
#include "store/run_tables.hpp"
#include "store/zstd_frames.hpp"

namespace ergometer {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMaxBuffered = 64 << 20;  // text over all streams while the disk takes nothing
constexpr std::size_t kFrameText = 1 << 20;     // text a frame, at most
constexpr std::size_t kWaitingText = 64 << 10;  // a stream with more is written however young its rows are

// Whole numbers as such: shorter to write than the general form, and easier to read ("2000000000", not "2e+09").
void append_value(std::string& out, std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return;
  if (std::abs(*value) < 1e15 && *value == std::trunc(*value))
    append_int(out, static_cast<std::int64_t>(*value));
  else
    append_double(out, *value);
}

Result<void> make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return tl::unexpected(errno_error("create", path, error.value()));
  return {};
}

// Nothing there but zero-byte files, which an interrupted write leaves behind.
bool holds_nothing(const fs::path& dir) {
  for (const std::string& name : list_dir(dir)) {
    std::error_code error;
    if (!fs::is_regular_file(fs::symlink_status(dir / name, error)) || fs::file_size(dir / name, error) != 0)
      return false;
  }
  return true;
}

}  // namespace

struct SampleStream::State {
  std::string name, header;
  bool own_time = false;
  fs::path path;
  std::mutex mutex;   // guards the five below
  std::string text;   // rows not yet written
  MonoTime oldest{};  // of the first of them, if there is one
  std::size_t limit = kMaxBuffered;
  std::size_t lost_rows = 0;  // dropped since the last event about it
  MonoTime lost_from{};
  int fd = -1;  // the rest belongs to the flushing thread
  off_t written = 0;
  std::string pending;  // rows being written

  ~State() {
    if (fd >= 0) ::close(fd);
  }
  // Drops the oldest rows until half of the limit is free, so that it is not done for each new row.
  void trim() {
    if (text.size() <= limit) return;
    std::size_t cut = text.find('\n', text.size() - limit / 2);
    cut = cut == std::string::npos ? text.size() : cut + 1;
    if (lost_rows == 0) lost_from = mono_ns(parse_int(std::string_view(text).substr(0, text.find(','))).value_or(0));
    lost_rows +=
        static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(cut), '\n'));
    text.erase(0, cut);
  }
  // Whether flush(before) writes this stream now; the header at once.
  bool is_due(std::optional<MonoTime> before) {
    const std::lock_guard lock(mutex);
    return written == 0 || text.size() > kWaitingText || (!text.empty() && (!before || oldest < *before));
  }
  Result<void> write_pending(FrameCompressor& compressor);
  Result<void> write_frame(std::string_view frame);
};

SampleStream::SampleStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
SampleStream::~SampleStream() = default;

void SampleStream::append(std::span<const Row> rows) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  if (s.text.empty() && !rows.empty()) s.oldest = rows.front().t;
  for (const Row& row : rows) {
    append_int(s.text, to_ns(row.t));
    if (!s.own_time) {
      s.text += ',';
      append_int(s.text, row.read_width.count());
    }
    for (const auto& value : row.values) {
      s.text += ',';
      append_value(s.text, value);
    }
    s.text += '\n';
  }
  s.trim();
}

// A frame that could not be written whole is taken back, so that the next try does not stand behind half a frame.
Result<void> SampleStream::State::write_frame(std::string_view frame) {
  std::size_t done = 0;
  while (done < frame.size()) {
    const ssize_t n = ::pwrite(fd, frame.data() + done, frame.size() - done, written + static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const auto error = errno_error("write", path, errno);
      if (::ftruncate(fd, written) != 0) return tl::unexpected(errno_error("shorten", path, errno));
      return tl::unexpected(error);
    }
    done += static_cast<std::size_t>(n);
  }
  written += static_cast<off_t>(frame.size());
  return {};
}

Result<void> SampleStream::State::write_pending(FrameCompressor& compressor) {
  {
    const std::lock_guard lock(mutex);
    pending.clear();
    pending.swap(text);
  }
  // The header goes into the first frame, even before there is a row.
  if (written == 0) pending.insert(0, header);
  std::size_t begin = 0;
  Result<void> result;
  while (begin < pending.size() && result) {
    std::size_t end = pending.size();
    if (end - begin > kFrameText) end = pending.find('\n', begin + kFrameText) + 1;
    const auto frame = compressor.compress(std::string_view(pending).substr(begin, end - begin));
    result = frame ? write_frame(*frame) : tl::unexpected(frame.error());
    if (result) begin = end;
  }
  if (result) return result;
  if (begin == 0 && written == 0) begin = header.size();
  const std::lock_guard lock(mutex);
  text.insert(0, pending, begin);
  oldest = MonoTime::min();
  trim();
  return result;
}

struct RunWriter::State {
  struct NodeFiles {
    fs::path folder;
    std::string events;  // lines not yet written
  };
  fs::path dir;
  fs::path marker_root;
  std::string own_node;  // of a part
  Manifest run;          // of a part
  FrameCompressor compressor;
  std::mutex mutex;  // guards the two below; the streams stay where they are
  std::map<std::string, NodeFiles> nodes;
  std::map<std::string, std::unique_ptr<SampleStream>> streams;  // by path

  Result<void> write_events(const fs::path& path, const std::string& lines);
  void note_losses();
};

RunWriter::RunWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}

RunWriter::~RunWriter() {
  // Nobody is left to tell.
  if (const auto flushed = flush(); !flushed) return;
}

const fs::path& RunWriter::dir() const { return state_->dir; }
const fs::path& RunWriter::marker_root() const { return state_->marker_root; }
const std::string& RunWriter::node() const { return state_->own_node; }
const Manifest& RunWriter::run() const { return state_->run; }

Result<std::unique_ptr<RunWriter>> RunWriter::create(const fs::path& dir, const Manifest& manifest) {
  std::error_code error;
  const fs::path absolute = fs::absolute(dir, error);
  if (error || dir.empty()) return fail(ErrorCode::invalid_argument, "the run directory has no name");
  const auto status = fs::status(absolute, error);
  const bool existed = fs::exists(status);
  if (existed && !fs::is_directory(status))
    return fail(ErrorCode::exists, fmt::format("{} exists and is no folder", dir.string()),
                "choose another name with -o");
  if (existed && !holds_nothing(absolute))
    return fail(ErrorCode::exists, fmt::format("{} exists and is not empty", dir.string()),
                "choose another name with -o, or remove the old run");
  auto state = std::make_unique<State>();
  state->dir = absolute;
  state->marker_root = absolute;
  std::unique_ptr<RunWriter> writer(new RunWriter(std::move(state)));
  auto made = make_folder(absolute);
  if (made) made = writer->write_manifest(manifest);
  if (made) made = make_folder(absolute / "markers");
  if (made) return writer;
  if (existed)
    fs::remove(absolute / "run.json", error);
  else
    fs::remove_all(absolute, error);
  return tl::unexpected(made.error());
}

Result<std::unique_ptr<RunWriter>> RunWriter::join(const fs::path& dir, const Manifest& run, const Manifest& part) {
  std::error_code error;
  const fs::path absolute = fs::absolute(dir, error);
  if (error || dir.empty()) return fail(ErrorCode::invalid_argument, "the run directory has no name");
  auto found = begin_or_find_run(absolute, run);
  if (!found) return tl::unexpected(found.error());
  auto node = claim_node(absolute, part);
  if (!node) return tl::unexpected(node.error());
  auto state = std::make_unique<State>();
  state->dir = absolute;
  state->marker_root = absolute / "nodes" / *node;
  state->own_node = std::move(*node);
  state->run = std::move(*found);
  std::unique_ptr<RunWriter> writer(new RunWriter(std::move(state)));
  if (auto added = writer->add_node(writer->node()); !added) return tl::unexpected(added.error());
  return writer;
}

Result<void> RunWriter::write_manifest(const Manifest& manifest) {
  if (!state_->own_node.empty()) {
    Manifest part = manifest;
    if (!part.place) return fail(ErrorCode::invalid_argument, "the manifest of a part needs its place");
    part.place->node = state_->own_node;
    return write_file_atomically(state_->marker_root / "part.json", part_to_json(part));
  }
  return write_file_atomically(state_->dir / "run.json", manifest_to_json(manifest));
}

Result<void> RunWriter::add_node(const std::string& node) {
  const fs::path folder = state_->dir / "nodes" / file_name_of(node);
  if (auto made = make_folder(folder / "samples"); !made) return made;
  const std::lock_guard lock(state_->mutex);
  state_->nodes[node].folder = folder;
  return {};
}

Result<void> RunWriter::write_node(const Node& node) {
  if (auto added = add_node(node.name); !added) return added;
  return write_file_atomically(state_->dir / "nodes" / file_name_of(node.name) / "node.json", node_to_json(node));
}

Result<SampleStream*> RunWriter::open_samples(const std::string& node, const SensorInfo& sensor) {
  const std::lock_guard lock(state_->mutex);
  const auto known = state_->nodes.find(node);
  if (known == state_->nodes.end() || known->second.folder.empty())
    return fail(ErrorCode::not_found, fmt::format("node {} has not been written", node));
  auto stream = std::make_unique<SampleStream::State>();
  stream->name = sensor.name;
  stream->own_time = sensor.own_time;
  stream->path = known->second.folder / "samples" / (file_name_of(sensor.name) + ".csv.zst");
  std::vector<std::string> columns{"t_ns"};
  if (!sensor.own_time) columns.push_back("read_ns");
  for (const Channel& channel : sensor.channels) columns.push_back(channel.column);
  stream->header = csv_line(columns);
  stream->fd = ::open(stream->path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (stream->fd < 0) return tl::unexpected(errno_error("create", stream->path, errno));
  const std::string key = stream->path.string();
  auto& slot = state_->streams[key];
  slot.reset(new SampleStream(std::move(stream)));
  for (auto& [path, other] : state_->streams) {
    const std::lock_guard stream_lock(other->state_->mutex);
    other->state_->limit = kMaxBuffered / state_->streams.size();
  }
  return slot.get();
}

void RunWriter::add_event(const std::string& node, const Event& event) {
  const std::lock_guard lock(state_->mutex);
  std::string& lines = state_->nodes[node].events;
  if (lines.size() < kMaxBuffered) append_event_line(lines, event);
}

// Turns rows that were dropped into events, for the node whose folder the stream is in.
void RunWriter::State::note_losses() {
  for (auto& [path, stream] : streams) {
    SampleStream::State& s = *stream->state_;
    const std::lock_guard lock(s.mutex);
    if (s.lost_rows == 0) continue;
    for (auto& [name, node] : nodes)
      if (s.path.parent_path().parent_path() == node.folder)
        append_event_line(node.events,
                          {s.lost_from, s.name, "lost",
                           fmt::format("{} rows dropped: they could not be written in time", s.lost_rows)});
    s.lost_rows = 0;
  }
}

Result<void> RunWriter::State::write_events(const fs::path& path, const std::string& lines) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  const bool fresh = error || size == 0;
  auto result = append_line(path, fresh ? kEventsHeader + lines : lines);
  // Half a batch would stand there twice after the next try.
  if (!result && !error)
    fs::resize_file(path, size, error);
  else if (!result)
    fs::resize_file(path, 0, error);
  return result;
}

Result<void> RunWriter::flush(std::optional<MonoTime> before) {
  std::vector<SampleStream*> streams;
  {
    const std::lock_guard lock(state_->mutex);
    for (auto& [path, stream] : state_->streams) streams.push_back(stream.get());
  }
  // One failure does not keep the others from being written.
  Result<void> result;
  for (SampleStream* stream : streams) {
    if (!stream->state_->is_due(before)) continue;
    auto written = stream->state_->write_pending(state_->compressor);
    if (!written && result) result = std::move(written);
  }
  std::map<fs::path, std::pair<std::string, std::string>> events;  // path -> node, lines
  {
    const std::lock_guard lock(state_->mutex);
    state_->note_losses();
    for (auto& [name, node] : state_->nodes)
      if (!node.events.empty() && !node.folder.empty())
        events[node.folder / "events.csv"] = {name, std::exchange(node.events, {})};
  }
  for (auto& [path, batch] : events) {
    auto written = state_->write_events(path, batch.second);
    if (written) continue;
    const std::lock_guard lock(state_->mutex);
    state_->nodes[batch.first].events.insert(0, batch.second);
    if (result) result = std::move(written);
  }
  return result;
}

Result<void> RunWriter::write_regions(const std::string& node, MonoTime cut_at) {
  fs::path folder;
  {
    const std::lock_guard lock(state_->mutex);
    const auto known = state_->nodes.find(node);
    if (known == state_->nodes.end() || known->second.folder.empty())
      return fail(ErrorCode::not_found, fmt::format("node {} has not been written", node));
    folder = known->second.folder;
  }
  MarkerLog log(state_->marker_root / "markers");
  log.poll();
  std::string text = kRegionsHeader;
  for (const Region& region : log.regions(cut_at)) append_region_line(text, region);
  if (auto written = write_file_atomically(folder / "regions.csv", text); !written) return written;
  std::error_code error;
  for (const fs::path& file : log.ended()) fs::remove(file, error);
  fs::remove(state_->marker_root / "markers", error);  // fails, rightly, while a process still marks
  return {};
}

}  // namespace ergometer
