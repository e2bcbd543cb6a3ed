#include "parallel/rendezvous.hpp"

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <chrono>
#include <thread>

namespace ergometer::workload {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPoll{20};

std::string key(int rank) { return fmt::format("ergometer/{}", rank); }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

Result<StorePtr> open_store(const Rank& rank, double timeout_s) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(rank.port);
  options.isServer = rank.rank == 0;
  options.numWorkers = static_cast<std::size_t>(rank.size);
  options.waitWorkers = false;  // we wait ourselves, and know then who is missing
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(timeout_s * 1000));
  try {
    return StorePtr(c10::make_intrusive<c10d::TCPStore>(rank.address, options));
  } catch (const std::exception& error) {
    const std::string reason = first_line(error.what());
    if (rank.rank == 0) {
      return Error{Fault::data, fmt::format("rank 0 cannot listen on {}:{}: {}", rank.address, rank.port, reason),
                   "set MASTER_PORT to a free port, and MASTER_ADDR to an address of rank 0's machine"};
    }
    return Error{
        Fault::data,
        fmt::format("rank 0 did not answer on {}:{} within {:.0f} s: {}", rank.address, rank.port, timeout_s, reason),
        "check that rank 0 runs, and that MASTER_ADDR and MASTER_PORT reach it from this machine"};
  }
}

std::vector<std::string> missing(const StorePtr& store, int size) {
  std::vector<std::string> words;
  for (int rank = 0; rank < size; ++rank) {
    if (!store->check({key(rank)})) words.push_back(fmt::format("rank {}", rank));
  }
  return words;
}

// All identities in the order of ranks.
Result<Peers> exchange(const StorePtr& store, const Rank& rank, double timeout_s) {
  const std::string own = Peers::own_identity();
  store->set(key(rank.rank), std::vector<std::uint8_t>(own.begin(), own.end()));
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_s);
  for (auto absent = missing(store, rank.size); !absent.empty(); absent = missing(store, rank.size)) {
    if (Clock::now() >= deadline) {
      return Error{Fault::data,
                   fmt::format("{} of {} did not come to {}:{} within {:.0f} s", join_words(absent), rank.size,
                               rank.address, rank.port, timeout_s),
                   "check that every rank was started and reaches that address"};
    }
    std::this_thread::sleep_for(kPoll);
  }
  std::vector<std::string> identities;
  for (int other = 0; other < rank.size; ++other) {
    const std::vector<std::uint8_t> text = store->get(key(other));
    identities.emplace_back(text.begin(), text.end());
  }
  return Peers(identities);
}

}  // namespace

Result<Met> meet(const Rank& rank, double timeout_s) {
  auto store = open_store(rank, timeout_s);
  if (!store) return store.error();
  try {
    auto peers = exchange(*store, rank, timeout_s);
    if (!peers) return peers.error();
    return Met{std::move(*store), std::move(*peers)};
  } catch (const std::exception& error) {
    return Error{Fault::data,
                 fmt::format("rank 0 on {}:{} was lost while the ranks came together: {}", rank.address, rank.port,
                             first_line(error.what())),
                 "see what rank 0 said"};
  }
}

}  // namespace ergometer::workload
