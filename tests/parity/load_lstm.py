"""Writes OUT/load_lstm.pt: random weights, inputs and results of load_lstm's network in PyTorch, for
ergometer-workload-parity. Usage: load_lstm.py OUT"""
import pathlib
import sys

import torch


class LoadForecast(torch.nn.Module):
    """One LSTM layer (input 1, hidden 48) and one linear layer 48 to 1 (Caspart et al. 2022, arXiv:2212.01698)."""

    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(1, 48, batch_first=True)
        self.linear = torch.nn.Linear(48, 1)

    def forward(self, load):
        return self.linear(self.lstm(load)[0])


def main(out):
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(42)
    batch = 20
    network = LoadForecast()
    given = torch.rand(batch, 168, 1)
    target = torch.rand(batch, 168, 1)

    network.eval()
    with torch.no_grad():
        output = network(given)
    network.train()
    loss = torch.nn.functional.mse_loss(network(given), target)
    loss.backward()
    torch.save(
        {
            "weights": {name: tensor.detach().clone() for name, tensor in network.state_dict().items()},
            "tensors": [given, target],
            "samples": batch,
            "tokens": 0,
            "output": output,
            "loss": loss.detach(),
            "gradients": {name: tensor.grad.clone() for name, tensor in network.named_parameters()},
            "options": {"image_size": 0, "sequence": 0, "batch": batch},
        },
        pathlib.Path(out) / "load_lstm.pt",
    )


if __name__ == "__main__":
    main(sys.argv[1])
