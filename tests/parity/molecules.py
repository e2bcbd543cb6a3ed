"""Reference values for schnet, dimenet and pna from PyTorch Geometric 2.8: python molecules.py OUT writes OUT/NAME.pt.

Each file is a dict of plain tensors: the random weights, one batch in the order of workloads/molecules/inputs.hpp, the
predictions, the loss and its gradients. Neighbours and triplets are listed here, in the order of torch_cluster and
torch_sparse, so that neither package is needed.
"""

import math
import pathlib
import sys

import torch
import torch_geometric.nn.models.dimenet as dimenet_module
from torch_geometric.nn import PNAConv
from torch_geometric.nn.models import DimeNet, SchNet
from torch_geometric.nn.models.schnet import GaussianSmearing

ATOMS = [3, 9, 14, 18, 18, 21]  # of each molecule
MOST_NEIGHBOURS = 32
# How many atoms of 1,359 molecules of QM9 have 0, 1, 2, ... atoms nearer than 5 angstrom.
DEGREES = [0, 0, 6, 18, 11, 17, 65, 149, 239, 449, 709, 1093, 1587, 2028, 2555, 2899, 3089, 2745, 2462, 1663, 1224, 507,
           429, 146, 135, 12, 8]


class Pna(torch.nn.Module):
    """PyTorch Geometric's example for ZINC, on distances in place of bond types."""

    def __init__(self):
        super().__init__()
        self.node_emb = torch.nn.Embedding(100, 75)
        self.distance_expansion = GaussianSmearing(0.0, 5.0, 50)
        self.convs = torch.nn.ModuleList([
            PNAConv(75, 75, ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"],
                    torch.tensor(DEGREES), edge_dim=50, towers=5, pre_layers=1, post_layers=1, divide_input=False)
            for _ in range(4)
        ])
        self.mlp = torch.nn.Sequential(torch.nn.Linear(75, 50), torch.nn.ReLU(), torch.nn.Linear(50, 25),
                                       torch.nn.ReLU(), torch.nn.Linear(25, 1))

    def forward(self, z, pos, batch, edge_index):
        distance = (pos[edge_index[0]] - pos[edge_index[1]]).norm(dim=-1)
        edge_attr = self.distance_expansion(distance)
        x = self.node_emb(z)
        for conv in self.convs:
            x = torch.relu(conv(x, edge_index, edge_attr))
        pooled = x.new_zeros(len(ATOMS), x.size(1)).index_add(0, batch, x)
        return self.mlp(pooled)


def make_molecules():
    """Atoms on a jittered grid of 1.4 angstrom: distances and angles as in molecules, none of them equal."""
    z, pos, batch = [], [], []
    for molecule, atoms in enumerate(ATOMS):
        for i in range(atoms):
            z.append([1, 6, 7, 8, 9][torch.randint(5, ()).item()])
            pos.append([1.4 * (i % 3), 1.4 * (i // 3 % 3), 1.4 * (i // 9)])
            batch.append(molecule)
    pos = torch.tensor(pos) + 0.5 * torch.rand(len(pos), 3)
    return torch.tensor(z), pos, torch.tensor(batch)


def list_edges(pos, batch, cutoff):
    """(source, target) pairs by target, then by source."""
    edges = []
    for target in range(len(batch)):
        found = 0
        for source in range(len(batch)):
            near = batch[source] == batch[target] and ((pos[source] - pos[target]) ** 2).sum() < cutoff**2
            if source != target and near and found < MOST_NEIGHBOURS:
                edges.append((source, target))
                found += 1
    return edges


def list_slots(edges):
    """Number of slots an atom, and for each edge its slot at its target and at its source."""
    ranks_in, ranks_out, into, out_of = [], [], {}, {}
    for source, target in edges:
        ranks_in.append(into.get(target, 0))
        ranks_out.append(out_of.get(source, 0))
        into[target] = ranks_in[-1] + 1
        out_of[source] = ranks_out[-1] + 1
    slots = max(list(into.values()) + list(out_of.values()))
    in_slot = [target * slots + rank for (_, target), rank in zip(edges, ranks_in)]
    out_slot = [source * slots + rank for (source, _), rank in zip(edges, ranks_out)]
    return slots, in_slot, out_slot


def list_triplets(edges):
    """(edge k to j, edge j to i) with k other than i, by the second, then by the first."""
    into = {}
    for number, (_, target) in enumerate(edges):
        into.setdefault(target, []).append(number)
    return [(kj, ji) for ji, (j, i) in enumerate(edges) for kj in into.get(j, []) if edges[kj][0] != i]


def make_inputs(z, pos, batch, cutoff, with_triplets):
    edges = list_edges(pos, batch, cutoff)
    slots, in_slot, out_slot = list_slots(edges)
    source, target = [list(column) for column in zip(*edges)]
    filled = torch.zeros(len(z) * slots)
    filled[torch.tensor(in_slot)] = 1
    triplets = torch.zeros(3, 0, dtype=torch.int64)
    if with_triplets:
        pairs = list_triplets(edges)
        triplets = torch.tensor([[kj for kj, _ in pairs], [ji for _, ji in pairs],
                                 [out_slot[ji] * slots + in_slot[kj] % slots for kj, ji in pairs]])
    energy = torch.randn(len(ATOMS))
    tensors = [z, pos, batch, torch.tensor([source, target, in_slot, out_slot]), filled.view(len(z), slots), triplets,
               energy, torch.ones(len(ATOMS))]
    return tensors, torch.tensor([source, target]), triplets, energy


def randomise(model):
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.any():
                parameter.normal_(0, 0.1)


def save(folder, name, model, run, tensors, energy):
    model.eval()
    with torch.no_grad():
        output = run().squeeze(-1)
    model.train()
    loss = ((run().squeeze(-1) - energy) ** 2).mean()
    parameters = dict(model.named_parameters())  # each once: SchNet's state_dict has some under two names
    gradients = torch.autograd.grad(loss, list(parameters.values()))
    weights = {key: value.detach().clone() for key, value in parameters.items()}
    for key, value in model.named_buffers():
        if key.endswith(("distance_expansion.offset", "avg_deg_lin", "avg_deg_log")):
            weights[key] = value.clone()
    torch.save({
        "weights": weights,
        "tensors": tensors,
        "samples": len(ATOMS),
        "tokens": 0,
        "output": output,
        "loss": loss.detach(),
        "gradients": dict(zip(parameters, gradients)),
        "options": {"image_size": 0, "sequence": 0, "batch": len(ATOMS)},
    }, folder / f"{name}.pt")
    print(f"{name}: {sum(value.numel() for value in parameters.values())} parameters, loss {loss.item():.6f}")


def schnet(folder):
    z, pos, batch = make_molecules()
    tensors, edge_index, _, energy = make_inputs(z, pos, batch, 10.0, False)
    distance = (pos[edge_index[0]] - pos[edge_index[1]]).norm(dim=-1)
    model = SchNet(hidden_channels=128, num_filters=128, num_interactions=6, num_gaussians=50, cutoff=10.0,
                   interaction_graph=lambda *_: (edge_index, distance))
    randomise(model)
    save(folder, "schnet", model, lambda: model(z, pos, batch), tensors, energy)


def dimenet(folder):
    z, pos, batch = make_molecules()
    tensors, edge_index, triplets, energy = make_inputs(z, pos, batch, 5.0, True)
    model = DimeNet(hidden_channels=128, out_channels=1, num_blocks=6, num_bilinear=8, num_spherical=7, num_radial=6,
                    cutoff=5.0, max_num_neighbors=MOST_NEIGHBOURS, envelope_exponent=5, num_before_skip=1,
                    num_after_skip=2, num_output_layers=3)
    model.reset_parameters()
    randomise(model)
    source, target = edge_index
    kj, ji = triplets[0], triplets[1]
    listed = (target, source, target[ji], source[ji], source[kj], kj, ji)
    dimenet_module.radius_graph = lambda *_, **__: edge_index
    dimenet_module.triplets = lambda *_, **__: listed
    # The closed forms of the spherical basis lose most digits in fp32 at short distances: fp64 here.
    basis = model.sbf.forward
    model.sbf.forward = lambda dist, angle, idx_kj: basis(dist.double(), angle.double(), idx_kj).float()
    save(folder, "dimenet", model, lambda: model(z, pos, batch), tensors, energy)


def pna(folder):
    z, pos, batch = make_molecules()
    tensors, edge_index, _, energy = make_inputs(z, pos, batch, 5.0, False)
    model = Pna()
    randomise(model)
    atoms = sum(DEGREES)
    mean_log = sum(count * math.log(degree + 1) for degree, count in enumerate(DEGREES)) / atoms
    assert abs(model.convs[0].aggr_module.avg_deg_log.item() - mean_log) < 1e-5
    save(folder, "pna", model, lambda: model(z, pos, batch, edge_index), tensors, energy)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    for number, write in enumerate([schnet, dimenet, pna]):
        torch.manual_seed(number)
        write(folder)


if __name__ == "__main__":
    main()
