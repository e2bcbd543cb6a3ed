#include "molecules/data/collate.hpp"

#include <torch/torch.h>

#include <algorithm>

namespace ergometer::workload::molecules {
namespace {

using Index = std::int64_t;

struct Triplet {
  Index kj, ji, slot;
};

// The graph of all molecules, atoms numbered through.
class Graph {
 public:
  Graph(const std::vector<Labelled>& samples, const GraphRule& rule) {
    Index first = 0;
    for (const Labelled& sample : samples) {
      const std::size_t begin = edges_.size();
      append_edges(*sample.molecule, rule.cutoff, edges_);
      for (std::size_t e = begin; e < edges_.size(); ++e) {
        edges_[e].source += static_cast<std::int32_t>(first);
        edges_[e].target += static_cast<std::int32_t>(first);
      }
      first += sample.molecule->atoms();
    }
    atoms_ = first;
    rank();
  }

  const std::vector<Edge>& edges() const { return edges_; }
  Index atoms() const { return atoms_; }
  Index in_rank(std::size_t edge) const { return static_cast<Index>(edge) - first_in_[target(edge)]; }
  Index out_rank(std::size_t edge) const { return out_rank_[edge]; }
  Index degree(std::size_t atom) const { return first_in_[atom + 1] - first_in_[atom]; }
  Index most_neighbours() const { return most_; }

  std::vector<Triplet> triplets(Index slots) const {
    std::vector<Triplet> all;
    for (std::size_t ji = 0; ji < edges_.size(); ++ji) {
      const auto j = static_cast<std::size_t>(edges_[ji].source);
      const Index row = (static_cast<Index>(j) * slots + out_rank_[ji]) * slots;
      for (Index kj = first_in_[j]; kj < first_in_[j + 1]; ++kj) {
        if (edges_[static_cast<std::size_t>(kj)].source == edges_[ji].target) continue;
        all.push_back({kj, static_cast<Index>(ji), row + kj - first_in_[j]});
      }
    }
    return all;
  }

 private:
  std::size_t target(std::size_t edge) const { return static_cast<std::size_t>(edges_[edge].target); }

  void rank() {
    first_in_.assign(static_cast<std::size_t>(atoms_) + 1, 0);
    std::vector<Index> out(static_cast<std::size_t>(atoms_), 0);
    for (const Edge& edge : edges_) {
      ++first_in_[static_cast<std::size_t>(edge.target) + 1];
      out_rank_.push_back(out[static_cast<std::size_t>(edge.source)]++);
      most_ = std::max(most_, out_rank_.back() + 1);
    }
    for (std::size_t atom = 0; atom + 1 < first_in_.size(); ++atom) {
      most_ = std::max(most_, first_in_[atom + 1]);
      first_in_[atom + 1] += first_in_[atom];
    }
  }

  std::vector<Edge> edges_;
  std::vector<Index> first_in_;  // of each atom, the first edge into it; one more
  std::vector<Index> out_rank_;
  Index atoms_ = 0;
  Index most_ = 1;
};

struct Layout {
  Sizes sizes;
  Index slots = 1;
  Index rows = 0;  // molecules
};

void fill_atoms(const std::vector<Labelled>& samples, const Layout& layout, Batch& batch) {
  auto* element = batch.tensors[0].data_ptr<Index>();
  auto* position = batch.tensors[1].data_ptr<float>();
  auto* molecule = batch.tensors[2].data_ptr<Index>();
  auto* energy = batch.tensors[6].data_ptr<float>();
  auto* weight = batch.tensors[7].data_ptr<float>();
  Index atom = 0;
  Index row = 0;
  for (const Labelled& sample : samples) {
    const Molecule& from = *sample.molecule;
    std::copy(from.elements.begin(), from.elements.end(), element + atom);
    std::copy(from.positions.begin(), from.positions.end(), position + 3 * atom);
    std::fill_n(molecule + atom, from.atoms(), row);
    energy[row] = sample.energy;
    weight[row] = 1;
    atom += from.atoms();
    ++row;
  }
  for (; row < layout.rows; ++row) energy[row] = weight[row] = 0;
  for (Index dummy = 0; atom < layout.sizes.atoms; ++dummy, ++atom) {
    element[atom] = 0;
    position[3 * atom] = static_cast<float>(dummy % 2);  // partners of a pair are 1 angstrom apart
    position[3 * atom + 1] = position[3 * atom + 2] = 0;
    molecule[atom] = layout.rows;
  }
}

void fill_edges(const Graph& graph, const Layout& layout, Batch& batch) {
  auto* source = batch.tensors[3].data_ptr<Index>();
  Index* target = source + layout.sizes.edges;
  Index* in_slot = target + layout.sizes.edges;
  Index* out_slot = in_slot + layout.sizes.edges;
  auto* filled = batch.tensors[4].data_ptr<float>();
  std::fill_n(filled, layout.sizes.atoms * layout.slots, 0.0F);
  const auto edges = static_cast<Index>(graph.edges().size());
  for (Index e = 0; e < edges; ++e) {
    const auto edge = static_cast<std::size_t>(e);
    source[e] = graph.edges()[edge].source;
    target[e] = graph.edges()[edge].target;
    in_slot[e] = target[e] * layout.slots + graph.in_rank(edge);
    out_slot[e] = source[e] * layout.slots + graph.out_rank(edge);
    filled[in_slot[e]] = 1;
  }
  // Spread evenly over the pairs of dummy atoms, ascending. More of them than slots share a slot: all of them hold the
  // same values.
  const Index spare = layout.sizes.edges - edges;
  const Index dummies = (layout.sizes.atoms - graph.atoms()) / 2 * 2;
  for (Index i = 0; i < spare; ++i) {
    const Index e = edges + i;
    const Index dummy = i * dummies / spare;
    const Index rank = i - (dummy * spare + dummies - 1) / dummies;
    target[e] = graph.atoms() + dummy;
    source[e] = graph.atoms() + (dummy ^ 1);
    in_slot[e] = target[e] * layout.slots + rank % layout.slots;
    out_slot[e] = source[e] * layout.slots + rank % layout.slots;
    filled[in_slot[e]] = 1;
  }
}

void fill_triplets(const std::vector<Triplet>& triplets, const Graph& graph, const Layout& layout, Batch& batch) {
  auto* kj = batch.tensors[5].data_ptr<Index>();
  Index* ji = kj + layout.sizes.triplets;
  Index* slot = ji + layout.sizes.triplets;
  for (const Triplet& triplet : triplets) {
    *kj++ = triplet.kj;
    *ji++ = triplet.ji;
    *slot++ = triplet.slot;
  }
  const auto content = static_cast<Index>(triplets.size());
  const auto edges = static_cast<Index>(graph.edges().size());
  const Index spare = layout.sizes.triplets - content;
  const auto* out_slot = batch.tensors[3].data_ptr<Index>() + 3 * layout.sizes.edges;
  for (Index i = 0; i < spare; ++i) {
    const Index edge = edges + i * (layout.sizes.edges - edges) / spare;
    *kj++ = edge;
    *ji++ = edge;
    *slot++ = out_slot[edge] * layout.slots;
  }
}

}  // namespace

Batch collate(const std::vector<Labelled>& samples, const GraphRule& rule, const Shapes* shapes, Index rows) {
  const Graph graph(samples, rule);
  Layout layout;
  layout.slots = shapes ? shapes->neighbours : graph.most_neighbours();
  const auto triplets = rule.triplets ? graph.triplets(layout.slots) : std::vector<Triplet>();
  layout.sizes = {graph.atoms(), static_cast<Index>(graph.edges().size()), static_cast<Index>(triplets.size())};
  layout.rows = shapes ? rows : static_cast<Index>(samples.size());
  Batch batch;
  batch.samples = static_cast<Index>(samples.size());
  if (shapes) {
    batch.shape = shapes->smallest(layout.sizes);
    layout.sizes = shapes->sizes[batch.shape];
  }
  batch.tensors = {torch::empty({layout.sizes.atoms}, torch::kInt64),
                   torch::empty({layout.sizes.atoms, 3}),
                   torch::empty({layout.sizes.atoms}, torch::kInt64),
                   torch::empty({4, layout.sizes.edges}, torch::kInt64),
                   torch::empty({layout.sizes.atoms, layout.slots}),
                   torch::empty({3, layout.sizes.triplets}, torch::kInt64),
                   torch::empty({layout.rows}),
                   torch::empty({layout.rows})};
  fill_atoms(samples, layout, batch);
  fill_edges(graph, layout, batch);
  fill_triplets(triplets, graph, layout, batch);
  return batch;
}

}  // namespace ergometer::workload::molecules
