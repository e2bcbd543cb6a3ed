#!/usr/bin/env python3
"""Reference outputs of bert_base and distilbert from transformers 5.17 (PyTorch 2.11), for comparison in C++.

usage: language.py OUT

Writes OUT/bert_base.pt and OUT/distilbert.pt: random weights, one batch, logits (eval), loss and gradients (train mode,
no dropout), all fp32 and int64 in plain dicts, so that torch::pickle_load reads them. Tied tensors are written once,
under the name that the C++ network has.
"""
import os
import sys

import torch
from transformers import BertConfig, BertForMaskedLM, DistilBertConfig, DistilBertForMaskedLM

BATCH, SEQUENCE = 2, 16
# Names of tied tensors, where the reference might list the other one.
SAME = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
    "vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight",
}


def references():
    eager = {"attn_implementation": "eager"}
    yield "bert_base", 109514298, lambda: BertForMaskedLM(
        BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **eager))
    yield "distilbert", 66985530, lambda: DistilBertForMaskedLM(
        DistilBertConfig(dropout=0.0, attention_dropout=0.0, **eager))


def batch_of(generator, vocabulary):
    ids = torch.randint(1000, vocabulary, (BATCH, SEQUENCE), generator=generator)
    ids[:, 0] = 101
    ids[:, -1] = 102
    labels = torch.full_like(ids, -100)
    for row, place, to in ((0, 3, 103), (0, 7, 103), (0, 8, None), (1, 1, 103), (1, 12, 2500), (1, 14, 0)):
        labels[row, place] = ids[row, place]
        if to is not None:
            ids[row, place] = to  # 0: the padding token's embedding takes no gradient from the input
    return ids, labels


def copies(named):
    return {SAME.get(name, name): tensor.detach().to("cpu", torch.float32).contiguous().clone() for name, tensor in named}


def write(folder, name, parameters, make):
    torch.manual_seed(7)
    model = make()
    model.tie_weights()
    generator = torch.Generator().manual_seed(8)
    with torch.no_grad():
        # Biases and norms are constants at first, which would hide mistakes.
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator))
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == parameters, f"{name}: {count} parameters, not {parameters}"
    ids, labels = batch_of(generator, model.config.vocab_size)

    model.eval()
    with torch.no_grad():
        output = model(input_ids=ids).logits
    model.train()
    model.zero_grad(set_to_none=True)
    loss = model(input_ids=ids, labels=labels).loss
    loss.backward()
    torch.save({
        "weights": copies(model.named_parameters()),
        "tensors": [ids.clone(), labels.clone()],
        "samples": BATCH,
        "tokens": BATCH * SEQUENCE,
        "output": output.contiguous().clone(),
        "loss": loss.detach().clone(),
        "gradients": copies((n, p.grad) for n, p in model.named_parameters()),
        "options": {"image_size": 0, "sequence": SEQUENCE, "batch": BATCH},
    }, os.path.join(folder, name + ".pt"))
    print(f"{name}: loss {loss.item():.6f}")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: language.py OUT")
    os.makedirs(sys.argv[1], exist_ok=True)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    for name, parameters, make in references():
        write(sys.argv[1], name, parameters, make)


if __name__ == "__main__":
    main()
