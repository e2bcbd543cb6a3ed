#include "device/nvml/query.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ergometer::nvml {
namespace {

// The result of one row's queries.
struct Outcome {
  bool answered = false;
  Return failure = Return::success;

  void take(Return code) {
    if (code == Return::success || code == Return::not_found || code == Return::no_data)
      answered = true;
    else if (!is_fatal(failure))
      failure = code;
  }
  // A lost GPU may answer some calls from the driver's memory; those are not readings.
  [[nodiscard]] bool lost() const {
    return failure == Return::gpu_is_lost || failure == Return::uninitialized ||
           (!answered && failure != Return::success);
  }
};

}  // namespace

std::vector<std::string> column_names(const SensorInfo& info) {
  std::vector<std::string> names;
  for (const auto& channel : info.channels) names.push_back(channel.column);
  return names;
}

bool has_column(const Query& query, std::string_view column) {
  return std::any_of(query.channels.begin(), query.channels.end(), [&](const auto& c) { return c.column == column; });
}

QuerySensor::QuerySensor(std::shared_ptr<Driver> driver, std::shared_ptr<Gpu> gpu, SensorInfo info,
                         std::vector<Query> queries, std::string thread)
    : Sensor(std::move(info), std::move(thread)),
      driver_(std::move(driver)),
      gpu_(std::move(gpu)),
      queries_(std::move(queries)),
      cells_(column_names(info_)) {}

Result<void> QuerySensor::read(Readings& out) {
  auto access = driver_->access(*gpu_);
  if (!access) return tl::unexpected(access.error());
  if (access->generation != generation_) {
    generation_ = access->generation;
    for (auto& query : queries_) query.off = false;
  }
  cells_.begin();
  Outcome outcome;
  bool asked = false;
  std::size_t first = 0;
  for (auto& query : queries_) {
    if (!query.off) {
      asked = true;
      const Return code = query.ask(*access, cells_, first, out);
      if (code == Return::not_supported || code == Return::function_not_found) {
        query.off = true;
        out.event("note", fmt::format("GPU {}: {}: {}; not asked again", gpu_->index,
                                      query.what.empty() ? query.channels.front().column : query.what, to_text(code)));
      } else {
        outcome.take(code);
      }
    }
    first += query.channels.size();
  }
  access->lock.unlock();
  cells_.finish(out);
  if (outcome.lost()) {
    const bool fatal = is_fatal(outcome.failure);
    if (fatal) driver_->report(*gpu_, false);
    return fail(fatal ? ErrorCode::lost : ErrorCode::unavailable,
                fmt::format("GPU {} ({}): {}", gpu_->index, gpu_->uuid, to_text(outcome.failure)));
  }
  if (outcome.answered) driver_->report(*gpu_, true);
  if (asked) out.add(cells_.values());
  return {};
}

Channel gpu_channel(const GpuFacts& gpu, std::string column, Quantity quantity, std::string unit, Behaviour behaviour) {
  Channel channel;
  channel.column = std::move(column);
  channel.quantity = quantity;
  channel.unit = std::move(unit);
  channel.behaviour = behaviour;
  channel.domain = gpu.domain;
  channel.device = gpu.info.uuid;
  channel.scope = Scope::gpu;
  return channel;
}

Query field_query(std::string what, std::vector<FieldColumn> columns, const Driver::Access& access) {
  Query query;
  query.what = std::move(what);
  if (!access.api->field_values) return query;
  std::vector<FieldValue> request(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    request[i].field = columns[i].field;
    request[i].scope = columns[i].scope;
  }
  auto probe = request;
  if (access.api->field_values(access.device, static_cast<int>(probe.size()), probe.data()) != Return::success)
    return query;
  std::vector<FieldColumn> known;
  std::vector<FieldValue> known_request;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (is_unsupported(probe[i].status) || is_fatal(probe[i].status)) continue;
    query.channels.push_back(columns[i].channel);
    known.push_back(std::move(columns[i]));
    known_request.push_back(request[i]);
  }
  query.ask = [known = std::move(known), request = std::move(known_request), values = std::vector<FieldValue>()](
                  const Driver::Access& a, Cells& cells, std::size_t first, Readings&) mutable {
    values = request;
    const Return code = a.api->field_values(a.device, static_cast<int>(values.size()), values.data());
    if (code != Return::success) return code;
    Return failure = Return::success;
    bool any = false;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i].status == Return::gpu_is_lost) return Return::gpu_is_lost;
      if (values[i].status != Return::success) {
        if (!is_fatal(failure)) failure = values[i].status;
        continue;
      }
      any = true;
      const double number = number_of(values[i].type, values[i].value);
      const bool narrow = values[i].type == ValueType::u32;
      if (narrow)
        cells.put(first + i, std::uint64_t{values[i].value.u32}, number / known[i].divisor, known[i].limit);
      else if (values[i].type == ValueType::u64 && values[i].value.u64 == ~std::uint64_t{0})
        cells.reject(first + i, "all ones mean no value");
      else
        cells.put(first + i, number / known[i].divisor, known[i].limit);
    }
    // A value that is missing for now is not the GPU's failure, unless nothing at all came.
    return any || !is_fatal(failure) ? Return::success : failure;
  };
  return query;
}

GpuFacts::Power power_behaviour(unsigned architecture, int compute_major, int compute_minor) {
  using std::chrono::milliseconds;
  const Nanos second = std::chrono::seconds(1);
  if (architecture == kArchitectureUnknown || architecture < kPascal)
    return {Method::integral, {}, {}, {}, "whether this GPU averages it is not known"};
  if (architecture <= kVolta)
    return {Method::integral, milliseconds(10), milliseconds(10), milliseconds(20), "sees 10 ms of every 20 ms"};
  if (architecture == kTuring) return {Method::integral, milliseconds(100), milliseconds(100), milliseconds(100), ""};
  if (architecture == kAmpere && compute_major == 8 && compute_minor == 0)
    return {Method::integral, milliseconds(25), milliseconds(25), milliseconds(100), "sees 25 ms of every 100 ms"};
  if (architecture <= kAda) return {Method::average, second, milliseconds(100), milliseconds(100), ""};
  if (architecture == kHopper)
    return {Method::average, second, milliseconds(25), milliseconds(100), "sees 25 ms of every 100 ms"};
  return {Method::average, second, {}, milliseconds(100), ""};
}

}  // namespace ergometer::nvml
