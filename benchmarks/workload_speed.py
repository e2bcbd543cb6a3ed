#!/usr/bin/env python3
"""Training speed of ergometer-workload beside PyTorch eager: usage workload_speed.py PROGRAM [--json FILE] [options].

Needs PyTorch, torchvision, transformers and torch-geometric, and a GPU for --device cuda. For each network both sides
train the same network with the same batch, number format and update rule on synthetic samples, in turns: one block of
ours, one of PyTorch's, --pairs times. Nothing here is a test: medians and their spread are printed, never asserted.

PyTorch's side is a plain training loop: torch.optim with its defaults, autocast, cuDNN's benchmark mode, images channels
last, samples ready on the device. Where torch_cluster or torch_sparse are not installed, PyTorch Geometric's neighbours
and triplets are listed beforehand, in PyTorch's favour. Ours loads its synthetic samples from the host."""
import argparse
import concurrent.futures
import importlib
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

PARITY = pathlib.Path(__file__).resolve().parent.parent / "tests" / "parity"  # holds networks that no package has
BATCHES = {"vgg16": 64, "resnet50": 256, "inception_v3": 128, "xray_vgg19": 64, "bert_base": 32, "distilbert": 32,
           "schnet": 16, "dimenet": 16, "pna": 16, "load_lstm": 64}
SEQUENCE = 512
WARM_UP = 10  # steps, on both sides
FEWEST_STEPS = 20
MOLECULE_BATCHES = 8  # of different sizes, in turns


# --- PyTorch's side: a process a network, which times a block for each line that it is told ---


def reference(area):
    """The program of tests/parity that holds this area's networks."""
    if str(PARITY) not in sys.path:
        sys.path.insert(0, str(PARITY))
    return importlib.import_module(area)


def vision(torch, name, batch, device):
    build, channel_means, classes = reference("vision").NETWORKS[name][:3]
    side = 299 if name == "inception_v3" else 224
    network = build().to(device, memory_format=torch.channels_last)
    images = torch.randn(batch, len(channel_means[0]), side, side, device=device)
    images = images.to(memory_format=torch.channels_last)
    labels = torch.randint(classes, (batch,), device=device)
    entropy = torch.nn.functional.cross_entropy

    def loss(_):
        result = network(images)
        if isinstance(result, tuple):
            return entropy(result[0], labels) + 0.4 * entropy(result[1], labels)
        return entropy(result, labels)

    nesterov = name == "xray_vgg19"
    optimiser = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, nesterov=nesterov,
                                weight_decay=0 if nesterov else 1e-4)
    return network, loss, optimiser


def language(torch, name, batch, device):
    import transformers
    if name == "bert_base":
        network = transformers.BertForMaskedLM(transformers.BertConfig())
    else:
        network = transformers.DistilBertForMaskedLM(transformers.DistilBertConfig())
    network = network.to(device)
    ids = torch.randint(1000, network.config.vocab_size, (batch, SEQUENCE), device=device)
    labels = torch.where(torch.rand(batch, SEQUENCE, device=device) < 0.15, ids, -100)
    return network, lambda _: network(input_ids=ids, labels=labels).loss, torch.optim.AdamW(
        network.parameters(), lr=1e-4, weight_decay=0.01)


def load_lstm(torch, _, batch, device):
    class Forecaster(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(1, 48, batch_first=True)
            self.linear = torch.nn.Linear(48, 1)

        def forward(self, hours):
            return self.linear(self.lstm(hours)[0])

    network = Forecaster().to(device)
    hours, target = torch.rand(2, batch, 168, 1, device=device)
    return network, lambda _: torch.nn.functional.mse_loss(network(hours), target), torch.optim.Adam(
        network.parameters(), lr=1e-3)


def make_molecules(torch, batch, cutoff, device):
    """Molecules as large as QM9's (18 atoms on average), and their neighbours by target, then by source."""
    atoms = torch.randint(9, 28, (batch,))
    molecule = torch.repeat_interleave(torch.arange(batch), atoms)
    number = torch.cat([torch.arange(count) for count in atoms.tolist()])
    grid = torch.stack([number % 3, number // 3 % 3, number // 9], 1)
    position = 1.4 * grid + 0.5 * torch.rand(len(number), 3)
    elements = torch.tensor([1, 6, 7, 8, 9])[torch.randint(5, (len(number),))]
    near = (torch.cdist(position, position) < cutoff) & (molecule[:, None] == molecule)
    near.fill_diagonal_(False)
    edges = near.nonzero().flip(1).t().contiguous()
    return [t.to(device) for t in (elements, position, molecule, edges, torch.randn(batch))]


def list_triplets(torch, edges):
    """What PyTorch Geometric's DimeNet asks for: i, j, and of each triplet i, j, k, edge k to j, edge j to i."""
    source, target = edges
    pair = source[:, None] == target  # edge j to i, edge k to j
    pair &= target[:, None] != source
    ji, kj = pair.nonzero().t()
    return target, source, target[ji], source[ji], source[kj], kj, ji


def works(call):
    try:
        call()
        return True
    except Exception:  # ImportError, or an operator that was not built for this device
        return False


def molecules(torch, name, batch, device):
    from torch_geometric.nn import radius_graph
    from torch_geometric.nn.models import dimenet as dimenet_module
    from torch_geometric.nn.models import schnet as schnet_module
    parity = reference("molecules")
    parity.ATOMS = [0] * batch  # its PNA takes the number of molecules from here
    cutoff = 10.0 if name == "schnet" else 5.0
    batches = [make_molecules(torch, batch, cutoff, device) for _ in range(MOLECULE_BATCHES)]
    now = {}
    _, position, molecule, edges, _ = batches[0]
    if not works(lambda: radius_graph(position, cutoff, molecule)):
        print("no radius_graph: neighbours are listed beforehand", file=sys.stderr)
        schnet_module.radius_graph = dimenet_module.radius_graph = lambda *_, **__: now["edges"]
    if name == "dimenet" and not works(lambda: dimenet_module.triplets(edges, num_nodes=len(position))):
        print("no triplets: they are listed beforehand", file=sys.stderr)
        listed = [list_triplets(torch, b[3]) for b in batches]
        dimenet_module.triplets = lambda *_, **__: listed[now["number"]]
    if name == "schnet":
        network = schnet_module.SchNet(hidden_channels=128, num_filters=128, num_interactions=6, num_gaussians=50,
                                       cutoff=cutoff)
    elif name == "dimenet":
        network = dimenet_module.DimeNet(hidden_channels=128, out_channels=1, num_blocks=6, num_bilinear=8,
                                         num_spherical=7, num_radial=6, cutoff=cutoff)
    else:
        network = parity.Pna()
    network = network.to(device)

    def loss(step):
        now["number"] = step % len(batches)
        elements, position, molecule, edges, energy = batches[now["number"]]
        now["edges"] = edges
        arguments = (elements, position, molecule) + ((edges,) if name == "pna" else ())
        return torch.nn.functional.mse_loss(network(*arguments).squeeze(-1).float(), energy)

    return network, loss, torch.optim.Adam(network.parameters(), lr=1e-3)


def builder(name):
    if name in ("bert_base", "distilbert"):
        return language
    if name in ("schnet", "dimenet", "pna"):
        return molecules
    return load_lstm if name == "load_lstm" else vision


class Trainer:
    def __init__(self, torch, options, name):
        tf32 = options.precision == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = True
        torch.manual_seed(42)
        self.torch, self.device = torch, options.device
        self.type = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(options.precision)
        network, loss, self.optimiser = builder(name)(torch, name, BATCHES[name], options.device)
        network.train()
        self.loss = torch.compile(loss) if options.compiled else loss
        self.scaler = torch.amp.GradScaler(options.device, enabled=options.precision == "fp16")
        self.number = 0

    def synchronise(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def step(self):
        self.optimiser.zero_grad()
        with self.torch.autocast(self.device, dtype=self.type, enabled=self.type is not None):
            loss = self.loss(self.number)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimiser)
        self.scaler.update()
        self.number += 1

    def seconds_of(self, steps):
        self.synchronise()
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        self.synchronise()
        return time.perf_counter() - begin


def serve(options, name):
    """Reads the number of steps of a block a line and answers its seconds; the first line builds the network."""
    import torch
    if builder(name) is not load_lstm:
        reference(builder(name).__name__)  # imports torchvision and the like, before the first line: it takes seconds
    sys.stdin.readline()
    trainer = Trainer(torch, options, name)
    trainer.seconds_of(WARM_UP)
    print(json.dumps(trainer.seconds_of(WARM_UP) / WARM_UP), flush=True)
    for line in sys.stdin:
        print(json.dumps(trainer.seconds_of(int(line))), flush=True)


# --- the parent: takes turns and compares ---


class Server:
    """PyTorch's side of a network. It starts to import at once and takes the device with prepare()."""

    def __init__(self, options, name, compiled):
        command = [sys.executable, __file__, str(options.program), "--serve", name, "--device", options.device,
                   "--precision", options.precision] + (["--compiled"] if compiled else [])
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"PyTorch's side ended with exit code {self.process.wait()}")
        return float(answer)

    def prepare(self):
        return self.ask("prepare")  # seconds of a step

    def rate(self, steps, batch):
        return steps * batch / self.ask(steps)

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:  # it has failed already
            pass
        self.process.wait()


def own_rate(options, name, steps):
    command = [str(options.program), "train", name, "--data", "synthetic", "--device", options.device, "--precision",
               options.precision, "--batch", str(BATCHES[name]), "--epochs", "1", "--steps", str(steps), "--warm-up",
               str(WARM_UP), "--no-validation", "--compile", options.compile]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    rates = re.findall(r"([0-9.]+) samples/s", run.stdout)
    if run.returncode != 0 or not rates:
        raise RuntimeError(f"'{' '.join(command)}' ended with exit code {run.returncode}: {run.stderr.strip()}")
    return float(rates[-1])


def compare(options, name, server, compiled_server):
    batch = BATCHES[name]
    steps = max(FEWEST_STEPS, round(options.seconds / server.prepare()))
    if compiled_server:
        compiled_server.prepare()
    result = {"network": name, "batch": batch, "steps": steps, "ours": [], "eager": [], "compiled": []}
    for _ in range(options.pairs):
        result["ours"].append(own_rate(options, name, steps))
        result["eager"].append(server.rate(steps, batch))
        if compiled_server:
            result["compiled"].append(compiled_server.rate(steps, batch))
    result["ratio"] = [ours / eager for ours, eager in zip(result["ours"], result["eager"])]
    return result


def spread(values, digits):
    if not values:
        return ""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def print_row(result):
    print(f"| {result['network']} | {result['batch']} | {spread(result['ours'], 0)} | {spread(result['eager'], 0)} | "
          f"{spread(result['ratio'], 3)} | {spread(result['compiled'], 0)} |", flush=True)


def machine(device):
    if device != "cuda":
        return "the CPU"
    run = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                         stdout=subprocess.PIPE, text=True, check=False)
    return run.stdout.strip().splitlines()[0] if run.stdout.strip() else "an unknown GPU"


def measure(options):
    print(f"Training on {machine(options.device)}, {options.precision}, --compile {options.compile}: samples a second, "
          f"medians of {options.pairs} blocks (least to greatest)\n")
    print("| network | batch | ergometer-workload | PyTorch eager | ratio, pair by pair | torch.compile |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    results, failed = [], []

    def start(name):
        return Server(options, name, False), Server(options, name, True) if name in options.torch_compile else None

    with concurrent.futures.ThreadPoolExecutor(1) as ahead:  # the next network's imports, while this one is timed
        following = ahead.submit(start, options.networks[0])
        for number, name in enumerate(options.networks):
            servers = following.result()
            if number + 1 < len(options.networks):
                following = ahead.submit(start, options.networks[number + 1])
            try:
                results.append(compare(options, name, *servers))
                print_row(results[-1])
            except (RuntimeError, OSError) as error:
                failed.append(name)
                print(f"{name}: {error}", file=sys.stderr)
            finally:
                for server in servers:
                    if server:
                        server.close()
    if options.json:
        facts = {"machine": machine(options.device), "device": options.device, "precision": options.precision,
                 "compile": options.compile, "seconds": options.seconds, "results": results, "failed": failed}
        pathlib.Path(options.json).write_text(json.dumps(facts, indent=1) + "\n")
    return 1 if failed else 0


def names(text):
    chosen = text.split(",")
    for name in chosen:
        if name not in BATCHES:
            raise argparse.ArgumentTypeError(f"no network is named '{name}'; there are {', '.join(BATCHES)}")
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program", type=pathlib.Path, help="ergometer-workload")
    parser.add_argument("--networks", type=names, default=list(BATCHES), help="names with commas (default: all)")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16", "fp16"], default="bf16")
    parser.add_argument("--compile", choices=["graph", "off"], default="graph", help="of ours")
    parser.add_argument("--torch-compile", type=names, default=[], help="networks to time with torch.compile too")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a block")
    parser.add_argument("--json", help="write all values here")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--compiled", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options, options.serve)
    return measure(options)


if __name__ == "__main__":
    sys.exit(main())
