#include "model/trace.hpp"

namespace ergometer {

void Column::push(std::optional<double> value) {
  if (!value && present_.empty()) present_.assign(values_.size(), 1);
  if (!present_.empty() || !value) present_.push_back(value ? 1 : 0);
  values_.push_back(value.value_or(0.0));
}

Trace Trace::empty(SensorInfo info) {
  Trace trace;
  trace.columns.resize(info.channels.size());
  trace.info = std::move(info);
  return trace;
}

void Trace::push(const Row& row) {
  t_ns.push_back(to_ns(row.t));
  if (!info.own_time) read_ns.push_back(row.read_width.count());
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i].push(row.values[i]);
}

std::optional<std::size_t> Trace::column(std::string_view name) const {
  for (std::size_t i = 0; i < info.channels.size(); ++i)
    if (info.channels[i].column == name) return i;
  return std::nullopt;
}

}  // namespace ergometer
