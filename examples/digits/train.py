#!/usr/bin/env python3
"""Data-parallel training of a small network on the UCI handwritten digits.

Every process is one rank. It learns its place from the environment, as qj, torchrun and mpirun set it;
started by hand it is the only one. Gradients are averaged by gloo on CPUs and by nccl on GPUs.
"""

import argparse
import os
import sys
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

GOAL = 0.95  # test accuracy that the last epoch has to reach


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=32, help="per process (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=0.003, help="of Adam (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def place(torch_name: str, mpi_name: str, default: int) -> int:
    return int(os.environ.get(torch_name) or os.environ.get(mpi_name) or default)


def join_group() -> torch.device:
    """Joins the other ranks and returns the device of this one."""
    rank = place("RANK", "OMPI_COMM_WORLD_RANK", 0)
    world = place("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", 1)
    local_rank = place("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", 0)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500" if world > 1 else "0")  # alone, any free port will do
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl" if cuda else "gloo", rank=rank, world_size=world)
    return torch.device("cuda", local_rank) if cuda else torch.device("cpu")


def load(device: torch.device, seed: int) -> tuple[TensorDataset, TensorDataset]:
    """Splits the 1797 images of 8 by 8 pixels, the same way on every rank."""
    digits = load_digits()
    images, labels = digits.images / 16, digits.target
    split = train_test_split(images, labels, test_size=0.2, stratify=labels, random_state=seed)
    x_train, x_test, y_train, y_test = (torch.as_tensor(part, device=device) for part in split)
    return (
        TensorDataset(x_train.float().unsqueeze(1), y_train),
        TensorDataset(x_test.float().unsqueeze(1), y_test),
    )


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 4 * 4, 64), nn.ReLU(),
        nn.Linear(64, 10),
    )  # fmt: skip


def train_epoch(model: nn.Module, batches: DataLoader, optimizer: torch.optim.Optimizer) -> float:
    """Returns the mean loss over this rank's share of the images."""
    model.train()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()  # averages the gradients of all ranks
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


@torch.no_grad()
def accuracy(model: nn.Module, data: TensorDataset) -> float:
    """The network is the same on every rank, so each can judge it alone.

    That is also safer than to sum up over ranks: should gloo's thread hold the last reference to a tensor
    that Python made, torch 1.13 can hang when it takes the group down.
    """
    x, y = data.tensors
    model.eval()
    return (model(x).argmax(dim=1) == y).float().mean().item()


def main() -> int:
    args = parse_args()
    torch.manual_seed(args.seed)
    device = join_group()
    rank, world = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank} of {world} on {device}", flush=True)

    train, test = load(device, args.seed)
    sampler = DistributedSampler(train, seed=args.seed)
    batches = DataLoader(train, batch_size=args.batch_size, sampler=sampler)
    model = DistributedDataParallel(network().to(device), device_ids=[device.index] if device.type == "cuda" else None)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    reached = 0.0
    for epoch in range(1, args.epochs + 1):
        sampler.set_epoch(epoch)
        start = time.perf_counter()
        loss = train_epoch(model, batches, optimizer)
        speed = len(sampler) * world / (time.perf_counter() - start)
        reached = accuracy(model.module, test)
        if rank == 0:
            print(f"epoch {epoch:2}  loss {loss:.4f}  accuracy {reached:.2%}  {speed:,.0f} images/s", flush=True)

    dist.barrier()
    dist.destroy_process_group()
    if reached < GOAL:
        print(f"accuracy {reached:.2%} is below {GOAL:.0%}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
