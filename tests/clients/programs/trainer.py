# SPDX-License-Identifier: Apache-2.0
"""The Trainer of transformers trains a tiny Llama, whose weights are random."""

from __future__ import annotations

import sys
import tempfile

import torch
import torch.distributed as dist
from report import report
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

backend = sys.argv[1]
dist.init_process_group(backend)
torch.manual_seed(3)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=32,
    )
)
rows = torch.randint(0, 64, (64, 16), generator=torch.Generator().manual_seed(5))
data = [{"input_ids": row, "labels": row} for row in rows]
with tempfile.TemporaryDirectory() as folder:
    settings = TrainingArguments(
        output_dir=folder,
        use_cpu=True,
        max_steps=6,
        per_device_train_batch_size=2,
        logging_steps=1,
        learning_rate=1e-2,
        max_grad_norm=1.0,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
    )
    trainer = Trainer(model=model, args=settings, train_dataset=data, eval_dataset=data[:8])
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    losses.append(trainer.evaluate()["eval_loss"])
weights = [parameter.detach().sum() for parameter in model.parameters()]
report(dist.get_rank(), trainer.args.world_size, dist.get_backend(), [*losses, *weights])
dist.destroy_process_group()
